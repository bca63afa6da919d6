package subjects

// Plane is a class of records with its own sequence, queue and overflow policy.
type Plane string

// The planes. Bodies of requests have a stream of their own and are not a plane.
const (
	// PlaneLife carries what a source says of itself: open, update, close. Never dropped.
	PlaneLife Plane = "life"
	// PlaneTree carries component trees: snapshots and ops. Never dropped; coalesced to the newest state under pressure.
	PlaneTree Plane = "tree"
	// PlaneNet carries the life of requests. The oldest are dropped under pressure, and counted.
	PlaneNet Plane = "net"
	// PlaneConsole carries console messages and exceptions. The oldest are dropped under pressure, and counted.
	PlaneConsole Plane = "console"
	// PlaneEvent carries custom topics. The oldest are dropped under pressure, and counted.
	PlaneEvent Plane = "event"
)

// Planes lists every plane in the order in which an idle publisher serves them.
func Planes() []Plane {
	return []Plane{PlaneLife, PlaneTree, PlaneNet, PlaneConsole, PlaneEvent}
}

// Known reports whether readers of this version understand the plane; others are counted and passed over.
func (p Plane) Known() bool {
	switch p {
	case PlaneLife, PlaneTree, PlaneNet, PlaneConsole, PlaneEvent:
		return true
	}
	return false
}
