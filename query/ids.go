package query

import (
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/tree"
)

// Epoch names the record stream that ids belong to: the time of its creation,
// in milliseconds since the Unix epoch. A stream that was deleted and made again
// counts from 1 again, so what its numbers name has another Epoch. 0 is unknown.
type Epoch int64

// NodeID names one node of a tree for good: "<source>/n<number>.<epoch>". People
// may leave the epoch away, which then means the present one; the source's name will do then.
type NodeID string

// RequestID names one captured request for good:
// "<source>/<generation>/<id in the generation>". People may write
// "<source>#<number>" instead, where the number counts the source's requests and
// the source's name will do.
type RequestID string

// maxID bounds every id that is parsed, in bytes.
const maxID = 256

// NodeName is a NodeID in its parts.
type NodeName struct {
	Source  subjects.SourceID
	Backend tree.BackendNodeID
	// Epoch is 0 when the id has none.
	Epoch Epoch
}

// ID returns the id.
func (n NodeName) ID() NodeID {
	out := string(n.Source) + "/n" + strconv.FormatUint(uint64(n.Backend), 10)
	if n.Epoch != 0 {
		out += "." + strconv.FormatInt(int64(n.Epoch), 36)
	}
	return NodeID(out)
}

// Parse takes the id apart. The error wraps ErrMalformed.
func (id NodeID) Parse() (NodeName, error) {
	wrong := func() (NodeName, error) {
		return NodeName{}, Errorf(ErrMalformed, "node id %.80q is not of the form source/n123.epoch; take one from the answer of tree or find", string(id))
	}
	src, rest, ok := strings.Cut(string(id), "/n")
	if !ok || len(id) > maxID || !subjects.IsToken(src) {
		return wrong()
	}
	number, epoch, dated := strings.Cut(rest, ".")
	backend, err := strconv.ParseUint(number, 10, 53)
	if err != nil || backend == 0 {
		return wrong()
	}
	n := NodeName{Source: subjects.SourceID(src), Backend: tree.BackendNodeID(backend)}
	if dated {
		e, err := strconv.ParseInt(epoch, 36, 64)
		if err != nil || e <= 0 {
			return wrong()
		}
		n.Epoch = Epoch(e)
	}
	return n, nil
}

// RequestName is a RequestID in its parts: either Generation and Request, or Order.
type RequestName struct {
	Source     subjects.SourceID
	Generation subjects.Generation
	Request    network.RequestID
	// Order is the number of the request among those of its source, from 1; 0 when the id names it otherwise.
	Order uint64
}

// ID returns the id.
func (r RequestName) ID() RequestID {
	if r.Order != 0 {
		return RequestID(string(r.Source) + "#" + strconv.FormatUint(r.Order, 10))
	}
	return RequestID(string(r.Source) + "/" + string(r.Generation) + "/" + string(r.Request))
}

// Parse takes the id apart. The error wraps ErrMalformed.
func (id RequestID) Parse() (RequestName, error) {
	wrong := func() (RequestName, error) {
		return RequestName{}, Errorf(ErrMalformed, "request id %.80q is neither of the form source/generation/id nor source#number; take one from the answer of requests", string(id))
	}
	if len(id) > maxID {
		return wrong()
	}
	if src, number, ok := strings.Cut(string(id), "#"); ok {
		order, err := strconv.ParseUint(number, 10, 64)
		if err != nil || order == 0 || !subjects.IsToken(src) {
			return wrong()
		}
		return RequestName{Source: subjects.SourceID(src), Order: order}, nil
	}
	parts := strings.Split(string(id), "/")
	if len(parts) != 3 {
		return wrong()
	}
	for _, p := range parts {
		if !subjects.IsToken(p) {
			return wrong()
		}
	}
	return RequestName{Source: subjects.SourceID(parts[0]), Generation: subjects.Generation(parts[1]), Request: network.RequestID(parts[2])}, nil
}
