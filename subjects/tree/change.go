package tree

// ChangeKind says what a Change did.
type ChangeKind int

// The kinds of changes, in the order in which one record produces them:
// removals, then everything else.
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
type Change struct {
	Kind ChangeKind
	// Entry is the node concerned.
	Entry *Entry
	// Parent is the former parent of a removed or moved node, the parent of an inserted one; nil for a root.
	Parent *Entry
	// Previous is the sibling before an inserted or moved node at the time of the change; nil if it is the first.
	Previous *Entry
	// Old is the former content of an updated node.
	Old Node
}
