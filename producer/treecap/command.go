package treecap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/natscope/natscope/subjects/realm"
)

// serveEdits makes the source answer the command that edits a node's value. A
// program without anything to edit does not say that it can.
func (t *Tree) serveEdits() { t.p.OnCommand(string(realm.MethodEdit), t.onEdit) }

// onEdit carries the command out.
func (t *Tree) onEdit(ctx context.Context, params json.RawMessage) (any, error) {
	p, err := realm.ParseParams[realm.EditParams](params)
	if err != nil {
		return nil, err
	}
	if len(p.Path) > 0 {
		return nil, fmt.Errorf("%w: the values of a Go program are edited as a whole: edit %q itself", realm.ErrRefused, p.Symbol)
	}
	// Whoever asked gives up at the deadline. What is said shortly before it arrives,
	// and only the tree knows whether a setter hangs or was never called.
	if deadline, ok := ctx.Deadline(); ok {
		early, cancel := context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/10))
		defer cancel()
		ctx = early
	}
	return nil, asRealm(t.edit(ctx, p.ID, p.Symbol, p.Value))
}

// asRealm gives an error of Edit the code with which it travels.
func asRealm(err error) error {
	if err == nil {
		return nil
	}
	code := realm.CodeFailed
	for _, x := range []struct {
		err  error
		code realm.Code
	}{
		{ErrUnknownNode, realm.CodeNotFound}, {ErrNotWritable, realm.CodeRefused}, {ErrRefused, realm.CodeRefused},
		{ErrBusy, realm.CodeBusy}, {ErrTimeout, realm.CodeTimeout},
	} {
		if errors.Is(err, x.err) {
			code = x.code
			break
		}
	}
	return &realm.Error{Code: code, Message: strings.TrimPrefix(err.Error(), "treecap: ")}
}
