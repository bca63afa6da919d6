package goreal

import (
	"encoding/json"

	"github.com/natscope/natscope/subjects/realm"
)

// methods are the commands of sessions. A method is a small function of the
// command and its parameters that starts the work and replies once.
var methods map[realm.Method]func(c *command, params json.RawMessage)

func init() {
	methods = map[realm.Method]func(c *command, params json.RawMessage){
		"runtime.enable":                  on(acknowledge),
		"runtime.disable":                 on(acknowledge),
		"runtime.runIfWaitingForDebugger": on(acknowledge),
		"runtime.setAsyncCallStackDepth":  on(acknowledge),
		"runtime.discardConsoleEntries":   on(acknowledge),
		"runtime.addBinding":              on(acknowledge),
		"runtime.removeBinding":           on(acknowledge),
		"runtime.getIsolateId":            on(getIsolateID),
		"runtime.getHeapUsage":            on(getHeapUsage),
		"runtime.evaluate":                on(evaluate),
		"runtime.compileScript":           on(compileScript),
		"runtime.callFunctionOn":          on(callFunctionOn),
		"runtime.awaitPromise":            on(awaitPromise),
		"runtime.getProperties":           on(getProperties),
		"runtime.getExceptionDetails":     on(getExceptionDetails),
		"runtime.globalLexicalScopeNames": on(globalLexicalScopeNames),
		"runtime.queryObjects":            on(queryObjects),
		"runtime.releaseObject":           on(releaseObject),
		"runtime.releaseObjectGroup":      on(releaseObjectGroup),
		"runtime.terminateExecution":      on(terminateExecution),

		"console.resolve": on(resolveConsole),

		"tree.resolve":   on(resolveNode),
		"tree.nodeOf":    on(nodeOf),
		"tree.inspected": on(inspected),

		"sources.enable":          on(enableSources),
		"sources.disable":         on(disableSources),
		"sources.getScriptSource": on(getScriptSource),
		"sources.loadResource":    on(loadResource),

		"profiler.enable":              on(acknowledge),
		"profiler.disable":             on(disableProfiler),
		"profiler.setSamplingInterval": on(acknowledge),
		"profiler.start":               on(startProfile),
		"profiler.stop":                on(stopProfile),

		"heap.enable":                   on(acknowledge),
		"heap.disable":                  on(acknowledge),
		"heap.collectGarbage":           on(collectGarbage),
		"heap.startSampling":            on(startSampling),
		"heap.stopSampling":             on(stopSampling),
		"heap.getSamplingProfile":       on(getSamplingProfile),
		"heap.takeHeapSnapshot":         on(takeHeapSnapshot),
		"heap.getObjectByHeapObjectId":  on(objectOfSnapshot),
		"heap.getHeapObjectId":          on(snapshotIDOf),
		"heap.addInspectedHeapObject":   on(inspectSnapshotObject),
		"heap.startTrackingHeapObjects": on(refuseTracking),
		"heap.stopTrackingHeapObjects":  on(refuseTracking),
	}
}

// acknowledge answers what changes nothing here.
func acknowledge(c *command, _ nothing) { c.ok() }
