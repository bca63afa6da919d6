package tree

// CordisVersion is the version of the value that Cordis returns.
const CordisVersion = 1

// CordisTree is what all Cordis runtimes of a space look like: a value of its
// own, without handles, ids of transports or of any debugger.
type CordisTree struct {
	// Version is CordisVersion.
	Version int `json:"schemaVersion"`
	// Host is the tree of the host, nil if none has one. Of several hosts it is
	// the first that is connected, or else the first.
	Host *CordisRealm `json:"host"`
	// OtherHosts holds the trees of the hosts beside Host.
	OtherHosts []CordisRealm `json:"otherHosts,omitempty"`
	// Clients holds the trees of the pages, in the order in which the sources came.
	Clients []CordisRealm `json:"clients"`
}

// CordisRealm is the tree of one Cordis runtime and what is known of it.
type CordisRealm struct {
	// Source says whose tree it is.
	Source CordisSource `json:"source"`
	// Connection says whether the runtime lives.
	Connection CordisConnection `json:"connection"`
	// Revision is that of the tree in its generation.
	Revision uint64 `json:"revision"`
	// Truncated says that limits cut trailing branches.
	Truncated bool `json:"truncated"`
	// Root is the root Context.
	Root CordisNode `json:"root"`
}

// CordisSource names a source for readers.
type CordisSource struct {
	// ID is the source's id.
	ID string `json:"sourceId"`
	// Kind is host or client.
	Kind string `json:"kind"`
	// Label is the name that people gave the source.
	Label string `json:"label"`
}

// The states of a CordisConnection.
const (
	CordisConnected    = "connected"
	CordisDisconnected = "disconnected"
)

// CordisConnection says whether a runtime lives.
type CordisConnection struct {
	// State is CordisConnected or CordisDisconnected. The tree of a former
	// generation is disconnected until that of the new one has come.
	State string `json:"state"`
	// Reason says in words why it is not connected.
	Reason string `json:"reason,omitempty"`
}

// CordisNode is one Context or Fiber.
type CordisNode struct {
	// Kind is KindContext or KindFiber.
	Kind string `json:"kind"`
	// UID is that of a Fiber, 0 for a Context.
	UID uint64 `json:"uid,omitempty"`
	// Children are in order: any number for a Context, its one Context for a Fiber. It is never nil.
	Children []CordisNode `json:"children"`
}

// CordisInput is one source as Cordis reads it.
type CordisInput struct {
	// Source names it; a source of the kind client is a page, every other one a host.
	Source CordisSource
	// Connected says whether the source lives, and Reason why it does not.
	Connected bool
	Reason    string
	// Tree is its tree; sources without a tree of ProfileCordis are passed over.
	Tree *State
}

// clientKind is the kind of sources that are pages.
const clientKind = "client"

// Cordis returns the trees of the Cordis runtimes among some sources, in their
// order. The result shares nothing with the states, so it stays as it is.
func Cordis(sources ...CordisInput) CordisTree {
	out := CordisTree{Version: CordisVersion, Clients: []CordisRealm{}}
	var hosts []CordisRealm
	first := 0
	for _, s := range sources {
		if s.Tree == nil || s.Tree.Root == nil || s.Tree.Profile != ProfileCordis {
			continue
		}
		r := CordisRealm{
			Source: s.Source, Connection: connection(s),
			Revision: s.Tree.Revision, Truncated: s.Tree.Truncated, Root: cordisNode(s.Tree.Root),
		}
		if s.Source.Kind == clientKind {
			out.Clients = append(out.Clients, r)
			continue
		}
		if len(hosts) > 0 && hosts[first].Connection.State != CordisConnected && r.Connection.State == CordisConnected {
			first = len(hosts)
		}
		hosts = append(hosts, r)
	}
	for i := range hosts {
		if i == first {
			out.Host = &hosts[i]
		} else {
			out.OtherHosts = append(out.OtherHosts, hosts[i])
		}
	}
	return out
}

func connection(s CordisInput) CordisConnection {
	c := CordisConnection{State: CordisDisconnected, Reason: s.Reason}
	switch {
	case s.Connected && !s.Tree.Detached:
		return CordisConnection{State: CordisConnected}
	case s.Connected:
		c.Reason = "the source began again and has not sent its tree yet"
	case c.Reason == "":
		c.Reason = "the source is gone"
	}
	return c
}

func cordisNode(e *Entry) CordisNode {
	n := CordisNode{Kind: e.Kind, UID: e.UID(), Children: make([]CordisNode, len(e.Children))}
	for i, c := range e.Children {
		n.Children[i] = cordisNode(c)
	}
	return n
}
