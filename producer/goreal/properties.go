package goreal

import (
	"fmt"
	"os"

	"github.com/natscope/natscope/producer/goreal/internal/goprof"
	"github.com/natscope/natscope/producer/goreal/internal/js"
	"github.com/natscope/natscope/producer/goreal/internal/mirror"
	"github.com/natscope/natscope/producer/goreal/internal/remote"
)

type propertiesParams struct {
	ObjectID                 string `json:"objectId"`
	OwnProperties            bool   `json:"ownProperties"`
	AccessorPropertiesOnly   bool   `json:"accessorPropertiesOnly"`
	NonIndexedPropertiesOnly bool   `json:"nonIndexedPropertiesOnly"`
	GeneratePreview          bool   `json:"generatePreview"`
}

// getProperties is runtime.getProperties. Go values are read on the session's
// reader, so they can be looked at while the evaluator is busy.
func getProperties(c *command, p propertiesParams) {
	o, group, ok := c.object(p.ObjectID)
	if !ok {
		return
	}
	q := mirror.Query{Inherited: !p.OwnProperties, Accessors: p.AccessorPropertiesOnly, NonIndexed: p.NonIndexedPropertiesOnly, Preview: p.GeneratePreview}
	// What a Go value inherits are its methods, which are functions of the engine.
	_, inherits := o.(mirror.Value)
	if !js.OfEngine(o) && (!inherits || p.OwnProperties || p.AccessorPropertiesOnly) {
		c.read(func() { c.reply(o.Properties(c.s.lens(group), q), nil) })
		return
	}
	c.evaluate(0, func(e engine) {
		if c.owned(e, o) {
			c.reply(e.Properties(o, c.s.lens(group), q), nil)
		}
	})
}

type objectParams struct {
	ObjectID string `json:"objectId"`
}

// releaseObject is runtime.releaseObject.
func releaseObject(c *command, p objectParams) {
	c.s.handles.release(p.ObjectID)
	c.ok()
}

type groupParams struct {
	ObjectGroup string `json:"objectGroup"`
}

// releaseObjectGroup is runtime.releaseObjectGroup.
func releaseObjectGroup(c *command, p groupParams) {
	c.s.handles.releaseGroup(p.ObjectGroup)
	c.ok()
}

type namesResult struct {
	Names []string `json:"names"`
}

// globalLexicalScopeNames is runtime.globalLexicalScopeNames.
func globalLexicalScopeNames(c *command, _ nothing) {
	c.evaluate(0, func(e engine) { c.reply(namesResult{append([]string{}, e.Names()...)}, nil) })
}

type exceptionParams struct {
	ErrorObjectID string `json:"errorObjectId"`
}

type exceptionResult struct {
	Exception *remote.Exception `json:"exceptionDetails"`
}

// getExceptionDetails is runtime.getExceptionDetails.
func getExceptionDetails(c *command, p exceptionParams) {
	o, group, ok := c.object(p.ErrorObjectID)
	if !ok {
		return
	}
	c.evaluate(0, func(e engine) {
		if c.owned(e, o) {
			c.reply(exceptionResult{e.DetailsOf(o, c.s.lens(group))}, nil)
		}
	})
}

type isolateResult struct {
	ID string `json:"id"`
}

// getIsolateID is runtime.getIsolateId: one for the process.
func getIsolateID(c *command, _ nothing) {
	c.reply(isolateResult{fmt.Sprintf("go%d", os.Getpid())}, nil)
}

// getHeapUsage is runtime.getHeapUsage, from the runtime's own metrics.
func getHeapUsage(c *command, _ nothing) { c.reply(goprof.HeapUsage(), nil) }
