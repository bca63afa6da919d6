package goreal

import (
	"log/slog"
	"time"

	"github.com/natscope/natscope/producer/treecap"
)

// Options configures a realm. The zero value works.
type Options struct {
	// Tree is the component tree whose registered values are the live objects of
	// their nodes. Nil means that nodes have none.
	Tree *treecap.Tree
	// Writable lets the Console assign to fields, elements and entries of Go
	// values, under their guards. Without it they can only be read; functions
	// and methods can be called in any case.
	Writable bool
	// EvalTimeout is how long one evaluation may run; the default is 30 s. What
	// does not end then, because it is inside of the engine, is left alone two
	// seconds later and the Console begins anew.
	EvalTimeout time.Duration
	// CallTimeout is how long a Go function called from the Console may run
	// before it is left alone; the default is 10 s.
	CallTimeout time.Duration
	// MaxGrowth is by how many bytes the process may grow while an evaluation
	// runs before that is ended; the default is 256 MiB.
	MaxGrowth uint64
	// SourceRoots are folders in which sources are looked for that the program
	// was built from, when they are not where they were then (-trimpath, another
	// machine). The working directory is always one.
	SourceRoots []string
	// Logger gets what goes wrong in the realm itself. Nil: slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.EvalTimeout <= 0 {
		o.EvalTimeout = 30 * time.Second
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = 10 * time.Second
	}
	if o.MaxGrowth == 0 {
		o.MaxGrowth = 256 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
