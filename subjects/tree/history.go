package tree

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects/value"
)

// The bounds of a history, beside the number of its commits.
const (
	// maxHistoryBytes bounds the commits of one source together, roughly as they lie in memory.
	maxHistoryBytes = 2 << 20
	// maxCommitChanges and maxCommitBytes bound one commit; further changes are only counted.
	maxCommitChanges = 500
	maxCommitBytes   = 128 << 10
	// maxHistoryValue is how large a former or new value may be; larger ones are cut.
	maxHistoryValue = 1 << 10
	// maxHistoryName is how many bytes of a name are kept.
	maxHistoryName = 200
)

// Part says what of a node a HistoryChange is about.
type Part string

// The parts of a node. Changes of other fields have none: they say only that the node changed.
const (
	// PartValue is the value that Symbol names.
	PartValue Part = "value"
	// PartAttr is the attribute that Symbol names.
	PartAttr Part = "attr"
	// PartText is the node's text, PartLoc the place where it is defined; Symbol is empty.
	PartText Part = "text"
	PartLoc  Part = "loc"
)

// HistoryChange is one difference that a commit made: to one symbol of one
// node, or to a whole subtree.
type HistoryChange struct {
	// Op is one of the Op constants.
	Op string `json:"op"`
	// ID is the node's id in its realm, Backend that in the space, which no other node ever has.
	ID      NodeID        `json:"id"`
	Backend BackendNodeID `json:"backend"`
	// Name is the node's name, cut to 200 bytes.
	Name string `json:"name"`
	// Nodes is how many nodes an added, removed or moved subtree has, its top included.
	Nodes int `json:"nodes,omitempty"`
	// Part and Symbol say what of an updated node changed. Those of a Fiber that came or went are its uid.
	Part   Part   `json:"part,omitempty"`
	Symbol string `json:"symbol,omitempty"`
	// From and To are the former and the new value, each encoded as package value
	// says, and cut to about 1 KiB; absent if there was none. Those of a moved
	// node name its parents.
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// HistoryCommit is what one record changed. It never changes itself, so that
// readers may keep it.
type HistoryCommit struct {
	// Seq counts the commits of a source from 1, over all its generations.
	Seq uint64 `json:"seq"`
	// T is the wall-clock time of the record in milliseconds since the Unix epoch; 0 if the source never said what time it had.
	T float64 `json:"t"`
	// Flush is the number that the source gave the flush, 0 for none. Flushes that
	// are larger than a record make several commits; numbers begin again with each generation.
	Flush uint64 `json:"flush,omitempty"`
	// Snapshot says that the changes were found by comparing a whole tree with the one before it.
	Snapshot bool `json:"snapshot,omitempty"`
	// Changes are in the order in which they were applied; More counts those that were left out.
	Changes []HistoryChange `json:"changes"`
	More    int             `json:"more,omitempty"`
}

// History is the newest commits of one source.
type History struct {
	// Commits holds them, oldest first. Readers must not change them, and may keep each but not the slice.
	Commits []HistoryCommit
	// Count is the number of the newest commit, Dropped that of the newest one that is no longer kept.
	Count   uint64
	Dropped uint64

	bytes int
}

// Since returns the commits behind the one with the given number; 0 asks for
// all. truncated says that some of them are no longer kept. The slice is the caller's.
func (h *History) Since(seq uint64) (commits []HistoryCommit, truncated bool) {
	skip := uint64(0)
	if seq > h.Dropped {
		skip = min(seq-h.Dropped, uint64(len(h.Commits)))
	}
	return slices.Clone(h.Commits[skip:]), seq < h.Dropped
}

// Restore puts back the next commit of a history that is being rebuilt from
// storage, after Dropped and Count were set.
func (h *History) Restore(c HistoryCommit) {
	h.Commits = append(h.Commits, c)
	h.bytes += c.size()
}

// add appends a commit and drops the oldest beyond the limits; limit 0 or less leaves only that of bytes.
func (h *History) add(c HistoryCommit, limit int) {
	if len(c.Changes) == 0 && c.More == 0 {
		return
	}
	h.Count++
	c.Seq = h.Count
	h.Restore(c)
	for len(h.Commits) > 1 && (limit > 0 && len(h.Commits) > limit || h.bytes > maxHistoryBytes) {
		h.bytes -= h.Commits[0].size()
		h.Commits[0] = HistoryCommit{}
		h.Commits = h.Commits[1:]
		h.Dropped++
	}
}

// size returns about how many bytes a commit takes.
func (c *HistoryCommit) size() int {
	n := 64
	for i := range c.Changes {
		n += c.Changes[i].size()
	}
	return n
}

func (c *HistoryChange) size() int {
	return 160 + len(c.Name) + len(c.Symbol) + len(c.From) + len(c.To)
}

// commitFrom turns the changes of one record into those that a history keeps.
// Previous values come from the changes themselves: they never cross the wire.
func commitFrom(changes []Change) (out []HistoryChange, more int) {
	size := 0
	for i := range changes {
		for _, c := range changesOf(&changes[i]) {
			if n := c.size(); len(out) < maxCommitChanges && size+n <= maxCommitBytes && more == 0 {
				out = append(out, c)
				size += n
				continue
			}
			more++
		}
	}
	return out, more
}

// changesOf returns what a history says of one change.
func changesOf(c *Change) []HistoryChange {
	h := HistoryChange{ID: c.Entry.ID, Backend: c.Entry.Backend, Name: cutText(c.Entry.Name, maxHistoryName)}
	switch c.Kind {
	case Updated:
		h.Op = OpUpdate
		return updatesOf(h, &c.Old, &c.Entry.Node)
	case Moved:
		h.Op, h.From, h.To = OpMove, place(c.Parent), place(c.Entry.Parent)
	case Removed:
		h.Op = OpRemove
		h.Part, h.Symbol, h.From = uidOf(&c.Entry.Node)
	case Inserted:
		h.Op = OpAdd
		h.Part, h.Symbol, h.To = uidOf(&c.Entry.Node)
	}
	c.Entry.Walk(func(*Entry) bool { h.Nodes++; return true })
	return []HistoryChange{h}
}

// place names an entry as the parent of another one.
func place(e *Entry) json.RawMessage {
	if e == nil {
		return nil
	}
	return text(cutText(e.Name, maxHistoryName) + " " + strconv.FormatUint(uint64(e.ID), 10))
}

// uidOf returns the uid of a Fiber, without which nobody could tell which one it was.
func uidOf(n *Node) (Part, string, json.RawMessage) {
	if n.UID() == 0 {
		return "", "", nil
	}
	return PartAttr, AttrUID, text(n.Attrs[0].Value)
}

// updatesOf returns one change for each symbol of a node that differs.
func updatesOf(h HistoryChange, old, next *Node) []HistoryChange {
	var out []HistoryChange
	add := func(part Part, symbol string, from, to json.RawMessage) {
		h.Part, h.Symbol, h.From, h.To = part, cutText(symbol, maxHistoryName), from, to
		out = append(out, h)
	}
	for _, name := range differing(old.Values, next.Values) {
		add(PartValue, name, brief(old.Values[name]), brief(next.Values[name]))
	}
	attrsOf(old.Attrs, next.Attrs, func(name string, from, to json.RawMessage) { add(PartAttr, name, from, to) })
	if old.Text != next.Text {
		add(PartText, "", text(old.Text), text(next.Text))
	}
	if old.Loc != next.Loc {
		add(PartLoc, "", text(old.Loc), text(next.Loc))
	}
	if len(out) == 0 && declares(old, next) {
		add("", "", nil, nil)
	}
	return out
}

// declares reports whether what a node says about its values and snippets
// differs. A new ObjectRef is none of it: that is routing, which nobody sees.
func declares(old, next *Node) bool {
	return !slices.Equal(old.Writable, next.Writable) || !slices.Equal(old.Snippets, next.Snippets) ||
		!maps.Equal(old.ValueKinds, next.ValueKinds) || !slices.Equal(old.Attrs, next.Attrs)
}

// differing lists the names, in order, whose values are not the same.
func differing(old, next map[string]json.RawMessage) []string {
	var out []string
	for name, v := range old {
		if w, ok := next[name]; !ok || !bytes.Equal(v, w) {
			out = append(out, name)
		}
	}
	for name := range next {
		if _, ok := old[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// attrsOf tells of the attributes that differ. Of several with one name the last counts.
func attrsOf(old, next []Attr, tell func(name string, from, to json.RawMessage)) {
	if slices.Equal(old, next) {
		return
	}
	was, is := valuesOf(old), valuesOf(next)
	told := make(map[string]bool)
	for _, list := range [][]Attr{next, old} {
		for _, a := range list {
			from, had := was[a.Name]
			to, has := is[a.Name]
			if told[a.Name] || had == has && from == to {
				continue
			}
			told[a.Name] = true
			var f, t json.RawMessage
			if had {
				f = text(from)
			}
			if has {
				t = text(to)
			}
			tell(a.Name, f, t)
		}
	}
}

func valuesOf(attrs []Attr) map[string]string {
	out := make(map[string]string, len(attrs))
	for _, a := range attrs {
		out[a.Name] = a.Value
	}
	return out
}

// text encodes a string, cut if it is long.
func text(s string) json.RawMessage {
	if len(s) > maxHistoryValue {
		head := cutText(s, maxHistoryValue)
		return value.Append(nil, value.Value{Kind: value.String, Partial: true, Text: head, Size: utf8.RuneCountInString(s)})
	}
	return value.AppendString(nil, s)
}

// brief returns an encoded value, cut if it is large: a string to its head, a
// container to its preview, and everything else to what one line can show.
func brief(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxHistoryValue {
		return raw
	}
	v, err := value.Parse(raw)
	if err != nil {
		// Values were checked when they came, and stored ones were checked before.
		return text(string(raw))
	}
	switch v.Kind {
	case value.String:
		size := v.Size
		if !v.Partial {
			size = utf8.RuneCountInString(v.Text)
		}
		return value.Append(nil, value.Value{Kind: value.String, Partial: true, Text: cutText(v.Text, maxHistoryValue), Size: size})
	case value.Array, value.Object, value.Instance, value.Map, value.Set, value.URLSearchParams:
		kind := string(v.Kind)
		if v.Kind == value.Instance {
			kind = string(value.Object)
		}
		return value.Append(nil, value.Value{Kind: value.Dehydrated, Name: kind, Text: value.Preview(v), Size: v.Size, Opaque: true})
	case value.Error:
		return value.Append(nil, value.Value{Kind: value.Error, Name: cutText(v.Name, maxHistoryName), Text: cutText(v.Text, maxHistoryValue/2)})
	}
	return text(value.Preview(v))
}

// cutText returns the head of a text, never with a character cut in half.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}
