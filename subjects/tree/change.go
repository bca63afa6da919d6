package tree

// ChangeKind says what a Change did.
type ChangeKind int

// The kinds of changes. One record produces all removals before the first
// insertion or move.
const (
	// Removed means that Entry, with all below it, left Parent (nil: it was the root).
	Removed ChangeKind = iota + 1
	// Inserted means that Entry, with all below it, is new under its Parent behind Previous.
	Inserted
	// Updated means that Entry has other attributes, text, values or flags than Old.
	Updated
	// Moved means that Entry, with all below it, left Parent and is now under Entry.Parent behind Previous.
	Moved
)

// Change is one difference that a record made to a tree. Entries are those of
// the state; they may change again with the next record, so readers take what
// they need before that.
//
// The changes of one record can be replayed in order from what the entries are
// after it: an inserted entry comes once, with everything that is below it in
// the end, and nothing below it is the subject of another change, save that it
// may have been removed elsewhere before; every entry is moved at most once,
// and only between entries that were there all the time. The entry of a removal
// keeps what was below it, also where a node of it comes back in an insertion:
// that one is another Entry with the same BackendNodeID.
type Change struct {
	// Kind says which of the other fields are set.
	Kind ChangeKind
	// Entry is the node concerned.
	Entry *Entry
	// Parent is the former parent of a removed or moved node, the parent of an inserted or updated one; nil for a root.
	Parent *Entry
	// Previous is the sibling before an inserted or moved node at the time of the change; nil if it is the first.
	Previous *Entry
	// Old is the former content of an updated node.
	Old Node
}
