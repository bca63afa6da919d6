package goreal

import (
	"github.com/natscope/natscope/producer/goreal/internal/js"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

// engine is what the realm needs of a JavaScript engine. Except for Interrupt
// and Abort, its methods run on the goroutine of its world. Values are the
// mirror's: Go values, which need no engine to be shown, and the engine's own.
type engine interface {
	// Expose and ExposeFunc make globals.
	Expose(name string, v mirror.Value)
	ExposeFunc(name string, get func() (mirror.Value, error))
	// Run evaluates a source, Pure does if that changes nothing.
	Run(name, src string, console bool) (out mirror.Object, await bool, err error)
	Pure(src string) (mirror.Object, error)
	// Call calls a function given by its source; CallPure does if that changes nothing.
	Call(fn string, this mirror.Object, args []mirror.Object) (mirror.Object, error)
	CallPure(fn string, this mirror.Object, args []mirror.Object) (mirror.Object, error)
	// Await calls done with what a promise gives; Unbox is for results of Run that await.
	Await(v mirror.Object, done func(mirror.Object, error))
	Unbox(v mirror.Object) mirror.Object
	// Properties lists the properties of any value, with those that it inherits if they are wanted.
	Properties(o mirror.Object, l *mirror.Lens, q mirror.Query) remote.Properties
	// Names lists what inputs declared.
	Names() []string
	// FromJSON, FromUnserializable and ByValue convert.
	FromJSON(data []byte) (mirror.Object, error)
	FromUnserializable(s string) (mirror.Object, error)
	ByValue(o mirror.Object) (remote.Object, error)
	// Details and DetailsOf describe errors.
	Details(err error, l *mirror.Lens) *remote.Exception
	DetailsOf(o mirror.Object, l *mirror.Lens) *remote.Exception
	// Owned reports whether a value can be used here.
	Owned(o mirror.Object) bool
	// TypeOf returns the Go type whose prototype or constructor a value is.
	TypeOf(o mirror.Object) (mirror.Type, bool)
	// List makes an array.
	List(items []mirror.Value) mirror.Object
	// Interrupt ends what runs.
	Interrupt(reason string)
	ClearInterrupt()
	// Close ends the timers.
	Close()
}

var _ engine = (*js.Engine)(nil)
