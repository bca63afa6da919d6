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
	"Debugger.scriptParsed",
	"Inspector.detached",
	"Log.entryAdded",
	"Network.dataReceived", "Network.eventSourceMessageReceived", "Network.loadingFailed", "Network.loadingFinished", "Network.requestWillBeSent",
	"Network.requestWillBeSentExtraInfo", "Network.responseReceived", "Network.responseReceivedExtraInfo", "Network.webSocketClosed", "Network.webSocketCreated", "Network.webSocketFrameError", "Network.webSocketFrameReceived",
	"Network.webSocketFrameSent", "Network.webSocketHandshakeResponseReceived", "Network.webSocketWillSendHandshakeRequest",
	"Overlay.inspectModeCanceled", "Overlay.inspectNodeRequested", "Overlay.nodeHighlightRequested",
	"Page.frameAttached", "Page.frameDetached", "Page.frameNavigated",
	"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Runtime.executionContextCreated", "Runtime.executionContextDestroyed", "Runtime.inspectRequested",
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
	for _, name := range slices.Sorted(maps.Keys(methods)) {
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
