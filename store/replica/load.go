package replica

import "context"

func (r *Replica) load(ctx context.Context) error { return nil }
