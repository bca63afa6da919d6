package follow

import "time"

// The terms of asking a generation for its whole tree.
const (
	// RepairTries is how often one generation is asked for the same loss.
	RepairTries = 3
	// RepairPause is how long it has to answer each time.
	RepairPause = time.Second
)

// Repair is a loss that only the source itself can make good. The zero value has not been asked for.
type Repair struct {
	// Tries is how often it was asked for, Due when it may be asked for again.
	Tries int
	Due   time.Time
}

// RepairStep is what is to be done about a loss.
type RepairStep int

// The steps of a repair.
const (
	// RepairWaits means that the source still has time to answer.
	RepairWaits RepairStep = iota
	// RepairAsks means that the source is to be asked now.
	RepairAsks
	// RepairGivesUp means that it was asked often enough; the fault stays for people to see.
	RepairGivesUp
	// RepairDone means that what was lost has come, or cannot come any more.
	RepairDone
)

// Step returns the repair at a time, and what is to be done. whole says that nothing is missing any more.
func (r Repair) Step(now time.Time, whole bool) (Repair, RepairStep) {
	switch {
	case whole:
		return r, RepairDone
	case now.Before(r.Due):
		return r, RepairWaits
	case r.Tries == RepairTries:
		return r, RepairGivesUp
	}
	return Repair{r.Tries + 1, now.Add(RepairPause)}, RepairAsks
}
