package cdpgw

import (
	"maps"
	"slices"
	"strings"
)

// protocolEvents are the events that the gateway sends.
var protocolEvents = []string{
	"DOM.attributeModified", "DOM.attributeRemoved", "DOM.characterDataModified", "DOM.childNodeCountUpdated", "DOM.childNodeInserted",
	"DOM.childNodeRemoved", "DOM.documentUpdated", "DOM.setChildNodes",
	"DSHInspector.sourcesChanged",
	"Debugger.breakpointResolved", "Debugger.paused", "Debugger.resumed", "Debugger.scriptFailedToParse", "Debugger.scriptParsed",
	"HeapProfiler.addHeapSnapshotChunk", "HeapProfiler.heapStatsUpdate", "HeapProfiler.lastSeenObjectId", "HeapProfiler.reportHeapSnapshotProgress", "HeapProfiler.resetProfiles",
	"Inspector.detached",
	"Log.entryAdded",
	"Network.dataReceived", "Network.eventSourceMessageReceived", "Network.loadingFailed", "Network.loadingFinished", "Network.requestWillBeSent",
	"Network.requestWillBeSentExtraInfo", "Network.responseReceived", "Network.responseReceivedExtraInfo", "Network.webSocketClosed", "Network.webSocketCreated", "Network.webSocketFrameError", "Network.webSocketFrameReceived",
	"Network.webSocketFrameSent", "Network.webSocketHandshakeResponseReceived", "Network.webSocketWillSendHandshakeRequest",
	"Overlay.inspectModeCanceled", "Overlay.inspectNodeRequested", "Overlay.nodeHighlightRequested",
	"Page.frameAttached", "Page.frameDetached", "Page.frameNavigated",
	"Profiler.consoleProfileFinished", "Profiler.consoleProfileStarted", "Profiler.preciseCoverageDeltaUpdate",
	"Target.attachedToTarget", "Target.detachedFromTarget",
	"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Runtime.executionContextCreated", "Runtime.executionContextDestroyed", "Runtime.inspectRequested",
}

// passedCommands are the commands that the gateway passes on to a program in
// child sessions and targets of the type node, besides those that it knows itself.
var passedCommands = []string{
	"Debugger.continueToLocation", "Debugger.evaluateOnCallFrame", "Debugger.getPossibleBreakpoints", "Debugger.getStackTrace", "Debugger.pause", "Debugger.removeBreakpoint",
	"Debugger.restartFrame", "Debugger.resume", "Debugger.setAsyncCallStackDepth", "Debugger.setBlackboxPatterns", "Debugger.setBlackboxedRanges", "Debugger.setBreakpoint",
	"Debugger.setBreakpointByUrl", "Debugger.setBreakpointOnFunctionCall", "Debugger.setBreakpointsActive", "Debugger.setInstrumentationBreakpoint", "Debugger.setPauseOnExceptions",
	"Debugger.setReturnValue", "Debugger.setScriptSource", "Debugger.setSkipAllPauses", "Debugger.setVariableValue", "Debugger.stepInto", "Debugger.stepOut", "Debugger.stepOver",
	"HeapProfiler.addInspectedHeapObject", "HeapProfiler.collectGarbage", "HeapProfiler.disable", "HeapProfiler.enable", "HeapProfiler.getHeapObjectId", "HeapProfiler.getObjectByHeapObjectId",
	"HeapProfiler.getSamplingProfile", "HeapProfiler.startSampling", "HeapProfiler.startTrackingHeapObjects", "HeapProfiler.stopSampling", "HeapProfiler.stopTrackingHeapObjects",
	"HeapProfiler.takeHeapSnapshot",
	"Profiler.disable", "Profiler.enable", "Profiler.getBestEffortCoverage", "Profiler.setSamplingInterval", "Profiler.start", "Profiler.startPreciseCoverage", "Profiler.stop",
	"Profiler.stopPreciseCoverage", "Profiler.takePreciseCoverage",
}

// commandNames are all commands that the gateway answers somewhere, sorted.
func commandNames() []string {
	names := slices.Concat(slices.Collect(maps.Keys(methods)), slices.Collect(maps.Keys(childMethods)), passedCommands)
	slices.Sort(names)
	return slices.Compact(names)
}

// protocolDomain is one domain in the answer of /json/protocol.
type protocolDomain struct {
	Domain   string         `json:"domain"`
	Types    []protocolItem `json:"types"`
	Commands []protocolItem `json:"commands"`
	Events   []protocolItem `json:"events"`
}

type protocolItem struct {
	Name string `json:"name"`
}

// protocol returns the description of what the gateway implements: names only.
// Clients build their API from it and learn what is there.
func protocol() any {
	domains := make(map[string]*protocolDomain)
	add := func(full string, event bool) {
		domain, name, _ := strings.Cut(full, ".")
		d := domains[domain]
		if d == nil {
			d = &protocolDomain{Domain: domain, Types: []protocolItem{}, Commands: []protocolItem{}, Events: []protocolItem{}}
			domains[domain] = d
		}
		if event {
			d.Events = append(d.Events, protocolItem{name})
		} else {
			d.Commands = append(d.Commands, protocolItem{name})
		}
	}
	for _, name := range commandNames() {
		add(name, false)
	}
	for _, name := range protocolEvents {
		add(name, true)
	}
	list := make([]*protocolDomain, 0, len(domains))
	for _, name := range slices.Sorted(maps.Keys(domains)) {
		list = append(list, domains[name])
	}
	return map[string]any{"version": map[string]string{"major": "1", "minor": "3"}, "domains": list}
}
