package cdpgw

import (
	"strconv"
	"strings"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/tree"
)

// readOnly is what a client is told that wants to change the document.
const readOnly = "This document is a view of running programs: only values that a program lets you set can be edited here."

// noObject is what a client is told that wants the live object behind a node.
const noObject = "There is no live object behind this node: natscope shows what the source recorded."

var domMethods = map[string]method{
	"DOM.enable":                          on((*session).domEnable),
	"DOM.disable":                         on((*session).domDisable),
	"DOM.getDocument":                     on((*session).domGetDocument),
	"DOM.requestChildNodes":               on((*session).domRequestChildNodes),
	"DOM.describeNode":                    on((*session).domDescribeNode),
	"DOM.getAttributes":                   on((*session).domGetAttributes),
	"DOM.getOuterHTML":                    on((*session).domGetOuterHTML),
	"DOM.getFrameOwner":                   on((*session).domGetFrameOwner),
	"DOM.pushNodesByBackendIdsToFrontend": on((*session).domPushNodesByBackendIDs),
	"DOM.pushNodeByPathToFrontend":        on((*session).domPushNodeByPath),
	"DOM.performSearch":                   on((*session).domPerformSearch),
	"DOM.getSearchResults":                on((*session).domGetSearchResults),
	"DOM.discardSearchResults":            on((*session).domDiscardSearchResults),
	"DOM.setInspectedNode":                on((*session).domSetInspectedNode),
	"DOM.markUndoableState":               constant(empty{}),
	"DOM.getNodesForSubtreeByStyle":       constant(map[string][]NodeID{"nodeIds": {}}),
	"DOM.getTopLayerElements":             constant(map[string][]NodeID{"nodeIds": {}}),
	"DOM.collectClassNamesFromSubtree":    on((*session).domCollectClassNames),
	"DOM.querySelector":                   on((*session).domQuerySelector),
	"DOM.querySelectorAll":                on((*session).domQuerySelectorAll),
	"DOM.getFlattenedDocument":            on((*session).domGetFlattenedDocument),
	"DOM.getBoxModel":                     refuse("Could not compute box model."),
	"DOM.getContentQuads":                 refuse("Could not compute content quads."),
	"DOM.resolveNode":                     on((*session).domResolveNode),
	"DOM.requestNode":                     on((*session).domRequestNode),
	"DOM.setNodeName":                     refuse(readOnly),
	"DOM.setOuterHTML":                    refuse(readOnly),
	"DOM.removeNode":                      refuse(readOnly),
	"DOM.copyTo":                          refuse(readOnly),
	"DOM.moveTo":                          refuse(readOnly),
	"DOM.undo":                            refuse(readOnly),
	"DOM.redo":                            refuse(readOnly),
}

// refuse is a method that always fails with a sentence.
func refuse(text string) method {
	return on(func(*session, empty) (any, error) { return nil, failf("%s", text) })
}

// nodeParams name a node in one of the protocol's ways.
type nodeParams struct {
	NodeID        NodeID             `json:"nodeId"`
	BackendNodeID tree.BackendNodeID `json:"backendNodeId"`
	ObjectID      ObjectID           `json:"objectId"`
	Depth         *int               `json:"depth"`
}

// levels returns the depth that a client asked for, -1 for all.
func (p nodeParams) levels(without int) (int, error) {
	switch {
	case p.Depth == nil:
		return without, nil
	case *p.Depth < -1 || *p.Depth == 0 && without > 0:
		return 0, failf("Please provide a positive integer as a depth or -1 for entire subtree")
	}
	return *p.Depth, nil
}

func (s *session) domEnable(empty) (any, error) {
	if !s.dom.enabled {
		s.dom.enabled = true
		s.dom.reset()
	}
	return nil, nil
}

// domDisable forgets what was pushed, as DevTools expects when it suspends a target.
func (s *session) domDisable(empty) (any, error) {
	s.dom.enabled = false
	s.dom.reset()
	s.dom.searches = searches{}
	return nil, nil
}

// domGetDocument begins anew: ids that the client had are not valid any more.
// It enables the domain, as Chrome does, since clients ask for the document first.
func (s *session) domGetDocument(p nodeParams) (any, error) {
	depth, err := p.levels(2)
	if err != nil {
		return nil, err
	}
	s.dom.enabled = true
	s.dom.reset()
	_, root := s.push(node{}, nil, depth)
	return map[string]*domNode{"root": root}, nil
}

func (s *session) domRequestChildNodes(p nodeParams) (any, error) {
	depth, err := p.levels(1)
	if err != nil {
		return nil, err
	}
	known := s.dom.byID[p.NodeID]
	if known == nil {
		return nil, errNoNode()
	}
	s.open(known, depth)
	return nil, nil
}

// errNoNode is Chrome's answer to an id that is unknown on this connection.
func errNoNode() error { return failf("Could not find node with given id") }

// lookup resolves the node that a command names.
func (s *session) lookup(p nodeParams) (node, error) {
	switch {
	case p.NodeID != 0:
		if known := s.dom.byID[p.NodeID]; known != nil {
			if n, ok := s.find(known.node, known.source); ok {
				return n, nil
			}
		}
		return node{}, errNoNode()
	case p.BackendNodeID != 0:
		if n, ok := s.find(p.BackendNodeID, ""); ok {
			return n, nil
		}
		return node{}, failf("No node found for given backend id")
	case p.ObjectID != "":
		if o, ok := parseNodeObject(p.ObjectID); ok && len(o.path) == 0 {
			src, e, err := s.component(o)
			return node{placeTree, src, e}, err
		}
		if n, ok := s.nodeOfObject(p.ObjectID); ok {
			return n, nil
		}
		return node{}, failf("Object id doesn't reference a Node")
	}
	return node{}, failf("Either nodeId, backendNodeId or objectId must be specified")
}

// domDescribeNode describes a node without making it known: ids are 0.
func (s *session) domDescribeNode(p nodeParams) (any, error) {
	n, err := s.lookup(p)
	if err != nil {
		return nil, err
	}
	depth, err := p.levels(0)
	if err != nil {
		return nil, err
	}
	return map[string]*domNode{"node": s.describeTree(n, depth)}, nil
}

func (s *session) describeTree(n node, depth int) *domNode {
	out := s.describe(n)
	if depth != 0 || onlyText(n) {
		for i, children := 0, s.children(n); i < children.len(); i++ {
			out.Children = append(out.Children, s.describeTree(children.at(i), max(depth-1, min(depth, 0))))
		}
	}
	return out
}

func (s *session) domGetAttributes(p nodeParams) (any, error) {
	n, err := s.lookup(nodeParams{NodeID: p.NodeID})
	if err != nil {
		return nil, err
	}
	if n.nodeType() != elementNode {
		return nil, failf("Node is not an Element")
	}
	attributes := s.attributes(n)
	if attributes == nil {
		attributes = []string{}
	}
	return map[string][]string{"attributes": attributes}, nil
}

type frameOwnerParams struct {
	FrameID FrameID `json:"frameId"`
}

// domGetFrameOwner returns the element that stands for a source.
func (s *session) domGetFrameOwner(p frameOwnerParams) (any, error) {
	id, ok := strings.CutPrefix(string(p.FrameID), "source.")
	src := s.source(subjects.SourceID(id))
	if !ok || src == nil {
		return nil, failf("Frame with the given id does not belong to the target.")
	}
	out := map[string]int64{"backendNodeId": int64(src.Element)}
	if known := s.pushPath(node{place: placeSource, source: src}); known != nil {
		out["nodeId"] = int64(known.id)
	}
	return out, nil
}

type backendIDsParams struct {
	BackendNodeIDs []tree.BackendNodeID `json:"backendNodeIds"`
}

// domPushNodesByBackendIDs makes nodes known; 0 stands for those that do not exist.
func (s *session) domPushNodesByBackendIDs(p backendIDsParams) (any, error) {
	if len(s.dom.byNode) == 0 {
		return nil, failf("Document needs to be requested first")
	}
	ids := make([]NodeID, 0, len(p.BackendNodeIDs))
	for _, id := range p.BackendNodeIDs {
		var known *pushed
		if n, ok := s.find(id, ""); ok {
			known = s.pushPath(n)
		}
		if known == nil {
			ids = append(ids, 0)
			continue
		}
		ids = append(ids, known.id)
	}
	return map[string][]NodeID{"nodeIds": ids}, nil
}

type pathParams struct {
	Path string `json:"path"`
}

// domPushNodeByPath finds a node by pairs of index and name from the document
// down, by which DevTools restores its selection.
func (s *session) domPushNodeByPath(p pathParams) (any, error) {
	n := node{}
	steps := strings.Split(p.Path, ",")
	for i := 0; i+1 < len(steps); i += 2 {
		at, err := strconv.Atoi(steps[i])
		children := s.children(n)
		if err != nil || at < 0 || at >= children.len() || !strings.EqualFold(children.at(at).name(), steps[i+1]) {
			return nil, failf("No node found for given path")
		}
		n = children.at(at)
	}
	known := s.pushPath(n)
	if known == nil {
		return nil, failf("No node found for given path")
	}
	return map[string]NodeID{"nodeId": known.id}, nil
}
