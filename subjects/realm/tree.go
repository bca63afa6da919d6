package realm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/natscope/natscope/subjects/tree"
)

// The bounds of parameters.
const (
	// maxPath is the most steps of a path.
	maxPath = 64
	// maxName is the most bytes of a name.
	maxName = 1 << 10
	// maxLoc is the most bytes of a place in a file.
	maxLoc = 4 << 10
)

// TextSymbol is the value that stands for a node's text: editing the text edits it.
const TextSymbol = "text"

// Step is one step into a value: a property's name, or the place of an entry in
// an array, a map or a set. On the wire it is a string or a whole number.
type Step struct {
	// Name is the property's name, when Indexed is not set.
	Name string
	// Index counts entries from 0.
	Index int
	// Indexed says that the step is Index.
	Indexed bool
}

// String returns the step as people read it.
func (s Step) String() string {
	if s.Indexed {
		return strconv.Itoa(s.Index)
	}
	return s.Name
}

// MarshalJSON writes a string or a number.
func (s Step) MarshalJSON() ([]byte, error) {
	if s.Indexed {
		return strconv.AppendInt(nil, int64(s.Index), 10), nil
	}
	return json.Marshal(s.Name)
}

// UnmarshalJSON reads a string or a whole number that is not negative.
func (s *Step) UnmarshalJSON(data []byte) error {
	*s = Step{}
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &s.Name)
	}
	n, err := strconv.ParseUint(string(data), 10, 31)
	if err != nil {
		return fmt.Errorf("%.40q is no step of a path: use a name or a place from 0", data)
	}
	s.Index, s.Indexed = int(n), true
	return nil
}

// InspectParams ask for one value of a node.
type InspectParams struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
	// Path begins with the value's name; the steps behind it lead into the value.
	Path []Step `json:"path"`
	// Limit is how many entries of a wide value are wanted; 0 means as many as values have by themselves.
	Limit int `json:"limit,omitempty"`
}

func (p InspectParams) check() error {
	switch {
	case p.ID == 0:
		return errors.New("id is missing")
	case len(p.Path) == 0 || len(p.Path) > maxPath || p.Path[0].Indexed:
		return fmt.Errorf("path must have 1 to %d steps, of which the first is the name of a value", maxPath)
	case p.Limit < 0:
		return errors.New("limit is negative")
	}
	return nil
}

// InspectResult is the value that a path leads to.
type InspectResult struct {
	// Value is encoded one level deep by package value. It is absent when the node or the path is gone.
	Value json.RawMessage `json:"value,omitempty"`
}

// EditParams ask for the change of one value of a node.
type EditParams struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
	// Symbol is the value's name, one of the node's writable ones.
	Symbol string `json:"symbol"`
	// Path leads to what is replaced inside of the value; empty replaces all of it.
	Path []Step `json:"path,omitempty"`
	// Value is what comes in its place: plain JSON, without any marker of package value.
	Value json.RawMessage `json:"value"`
}

func (p EditParams) check() error {
	switch {
	case p.ID == 0:
		return errors.New("id is missing")
	case p.Symbol == "" || len(p.Symbol) > maxName:
		return fmt.Errorf("symbol must have 1 to %d bytes", maxName)
	case len(p.Path) > maxPath:
		return fmt.Errorf("path has more than %d steps", maxPath)
	case len(p.Value) == 0:
		return errors.New("value is missing")
	}
	return nil
}

// HighlightParams say which node to show on the page. Realms stop showing it
// after a while when nobody repeats the command.
type HighlightParams struct {
	// ID is the node; 0 shows none.
	ID tree.NodeID `json:"id"`
}

// PickParams begin or end a pick. A pick that nobody repeats ends after a while.
type PickParams struct {
	// Active says whether to pick.
	Active bool `json:"active"`
}

// LogParams say which node to log.
type LogParams struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
}

func (p LogParams) check() error {
	if p.ID == 0 {
		return errors.New("id is missing")
	}
	return nil
}

// StoreGlobalParams say which value to keep under a global name.
type StoreGlobalParams struct {
	// ID is the node.
	ID tree.NodeID `json:"id"`
	// Symbol is the value's name; empty means all values of the node as one object.
	Symbol string `json:"symbol,omitempty"`
}

func (p StoreGlobalParams) check() error {
	switch {
	case p.ID == 0:
		return errors.New("id is missing")
	case len(p.Symbol) > maxName:
		return fmt.Errorf("symbol has more than %d bytes", maxName)
	}
	return nil
}

// StoreGlobalResult says where the value is.
type StoreGlobalResult struct {
	// Name is the global name, such as "$r".
	Name string `json:"name"`
}

// OpenParams say what to open in an editor.
type OpenParams struct {
	// Loc is a node's loc: a file, or file:line.
	Loc string `json:"loc"`
}

func (p OpenParams) check() error {
	if p.Loc == "" || len(p.Loc) > maxLoc {
		return fmt.Errorf("loc must have 1 to %d bytes", maxLoc)
	}
	return nil
}
