package subjects

import (
	"fmt"
	"slices"
)

// User is a kind of NATS user: which part of natscope connects with it.
type User string

// The kinds of users.
const (
	// UserProducer is a program that is a source, and may be no other one.
	UserProducer User = "producer"
	// UserIngest is the ingest: the producer of all browser pages.
	UserIngest User = "ingest"
	// UserStore is the store. It alone writes state, and creates the streams.
	UserStore User = "store"
	// UserGateway is a gateway: it reads everything of a space and sends commands.
	UserGateway User = "gateway"
	// UserViewer is a program that asks the query service, and nothing else.
	UserViewer User = "viewer"
	// UserDebugger is a viewer that may also have programs evaluate and edit, through a gateway.
	UserDebugger User = "debugger"
	// UserAuditor is a person who reads the audit.
	UserAuditor User = "auditor"
)

// Users returns all kinds of users.
func Users() []User {
	return []User{UserProducer, UserIngest, UserStore, UserGateway, UserViewer, UserDebugger, UserAuditor}
}

// Permissions are the subjects that a NATS user needs, and no others. To create
// consumers is a trusted right, since a consumer delivers wherever it is told
// to: only stores and gateways have it.
type Permissions struct {
	// Publish and Subscribe are the subjects that are allowed, with wildcards.
	Publish, Subscribe []string
	// Responses says that replies to requests are allowed, wherever they go.
	Responses bool
}

// InboxOf is the prefix of the inboxes of a user, which has to be set on its
// connection (nats.CustomInboxPrefix): with the common prefix each user could
// read the answers to all others.
func InboxOf(name string) string { return "_INBOX_" + Token(name) }

// PermissionsOf returns what a kind of user may do in a space. name is the
// user's name, which its inbox follows from. sources are the ids that a producer
// may have; empty means any. The error wraps ErrToken for a source or space that
// is no token, and says so for a kind that is unknown.
func PermissionsOf(kind User, space Space, name string, sources ...SourceID) (Permissions, error) {
	if err := checkToken("space", string(space)); err != nil {
		return Permissions{}, err
	}
	for _, s := range sources {
		if err := checkToken("source", string(s)); err != nil {
			return Permissions{}, err
		}
	}
	inbox := InboxOf(name) + ".>"
	switch kind {
	case UserProducer:
		if len(sources) == 0 {
			sources = []SourceID{"*"}
		}
		return producerPermissions(space, sources, inbox), nil
	case UserIngest:
		p := producerPermissions(space, []SourceID{"*"}, inbox)
		// Pages of Cordis may ask for the trees of all runtimes.
		p.Publish = append(p.Publish, QueryVerb(space, "cordis"))
		return p, nil
	case UserStore:
		return storePermissions(space, inbox), nil
	case UserGateway:
		return gatewayPermissions(space, inbox), nil
	case UserDebugger:
		return Permissions{Publish: []string{Query(space) + ".>", ChangeVerb(space, "*")}, Subscribe: []string{inbox}}, nil
	case UserViewer:
		return Permissions{Publish: []string{Query(space) + ".>"}, Subscribe: []string{inbox}}, nil
	case UserAuditor:
		s := AuditStreamName(space)
		return Permissions{Subscribe: []string{inbox}, Publish: []string{
			"$JS.API.STREAM.INFO." + s, "$JS.API.CONSUMER.CREATE." + s + ".*." + AuditsOf(space),
			"$JS.API.CONSUMER.MSG.NEXT." + s + ".*", "$JS.API.CONSUMER.DELETE." + s + ".*", "$JS.API.CONSUMER.INFO." + s + ".*",
		}}, nil
	}
	return Permissions{}, fmt.Errorf("subjects: there is no kind of user %.80q; use one of %v", kind, Users())
}

func producerPermissions(space Space, sources []SourceID, inbox string) Permissions {
	p := Permissions{Subscribe: []string{inbox}, Responses: true}
	base := root + "." + string(space) + "."
	for _, s := range sources {
		id := string(s)
		p.Publish = append(p.Publish, base+"rec."+id+".>", base+"body."+id+".>", base+"hb."+id, base+"evt."+id+".>", base+"claim."+id)
		p.Subscribe = append(p.Subscribe, base+"cmd."+id+".>", base+"ctl."+id+".>", base+"claim."+id)
	}
	// What the streams hold is asked for after a reconnect, to find out what a server that was restored has lost.
	p.Publish = append(p.Publish, "$JS.API.STREAM.INFO."+RecordStreamName(space), "$JS.API.STREAM.INFO."+BodyStreamName(space))
	return p
}

// reads are the calls with which stream and state of a space are followed.
func reads(space Space) []string {
	rec, body, state := RecordStreamName(space), BodyStreamName(space), StateStreamName(space)
	var out []string
	for _, s := range []string{rec, body, state} {
		out = append(out, "$JS.API.STREAM.INFO."+s, "$JS.API.DIRECT.GET."+s, "$JS.API.DIRECT.GET."+s+".>", "$JS.API.STREAM.MSG.GET."+s,
			"$JS.API.CONSUMER.MSG.NEXT."+s+".*", "$JS.API.CONSUMER.DELETE."+s+".*", "$JS.API.CONSUMER.INFO."+s+".*")
	}
	return append(out,
		"$JS.API.CONSUMER.CREATE."+rec+".*."+RecordsOf(space),
		"$JS.API.CONSUMER.CREATE."+body+".*."+root+"."+string(space)+".body.>",
		"$JS.API.INFO",
	)
}

func gatewayPermissions(space Space, inbox string) Permissions {
	base := root + "." + string(space) + "."
	return Permissions{
		Publish:   append(reads(space), base+"cmd.>", base+"audit.*"),
		Subscribe: []string{inbox, base + "hb.*", base + "evt.>", base + "query.>", base + "change.>", "$SRV.>"},
		Responses: true,
	}
}

func storePermissions(space Space, inbox string) Permissions {
	base := root + "." + string(space) + "."
	p := Permissions{
		Publish:   append(reads(space), base+"cmd.>", base+"ctl.>", "$KV."+StateBucketName(space)+".>", "$JS.API.STREAM.PURGE."+StateStreamName(space)),
		Subscribe: []string{inbox, base + "hb.*"},
		Responses: true,
	}
	for _, s := range []string{RecordStreamName(space), BodyStreamName(space), AuditStreamName(space), StateStreamName(space)} {
		p.Publish = append(p.Publish, "$JS.API.STREAM.CREATE."+s, "$JS.API.STREAM.UPDATE."+s, "$JS.API.STREAM.INFO."+s)
	}
	slices.Sort(p.Publish)
	p.Publish = slices.Compact(p.Publish)
	return p
}
