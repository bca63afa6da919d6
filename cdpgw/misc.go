package cdpgw

// detachedEvent is the parameters of Inspector.detached; DevTools shows the reason word by word.
type detachedEvent struct {
	Reason string `json:"reason"`
}

var inspectorMethods = map[string]method{
	"Inspector.enable":  constant(empty{}),
	"Inspector.disable": constant(empty{}),
}

// overlayMethods take what DevTools says while the pointer moves over the tree. Sources show no highlight.
var overlayMethods = map[string]method{
	"Overlay.enable":                        constant(empty{}),
	"Overlay.disable":                       constant(empty{}),
	"Overlay.highlightNode":                 constant(empty{}),
	"Overlay.hideHighlight":                 constant(empty{}),
	"Overlay.highlightFrame":                constant(empty{}),
	"Overlay.highlightRect":                 constant(empty{}),
	"Overlay.highlightQuad":                 constant(empty{}),
	"Overlay.setInspectMode":                constant(empty{}),
	"Overlay.setShowViewportSizeOnResize":   constant(empty{}),
	"Overlay.setShowGridOverlays":           constant(empty{}),
	"Overlay.setShowFlexOverlays":           constant(empty{}),
	"Overlay.setShowScrollSnapOverlays":     constant(empty{}),
	"Overlay.setShowContainerQueryOverlays": constant(empty{}),
	"Overlay.setShowIsolatedElements":       constant(empty{}),
	"Overlay.setShowInspectedElementAnchor": constant(empty{}),
	"Overlay.setShowHinge":                  constant(empty{}),
	"Overlay.setShowDisplayCutout":          constant(empty{}),
	"Overlay.setShowAdHighlights":           constant(empty{}),
	"Overlay.setShowDebugBorders":           constant(empty{}),
	"Overlay.setShowFPSCounter":             constant(empty{}),
	"Overlay.setShowLayoutShiftRegions":     constant(empty{}),
	"Overlay.setShowPaintRects":             constant(empty{}),
	"Overlay.setShowScrollBottleneckRects":  constant(empty{}),
	"Overlay.setShowWebVitals":              constant(empty{}),
	"Overlay.setPausedInDebuggerMessage":    constant(empty{}),
}

// targetInfo describes the target of the connection.
type targetInfo struct {
	TargetID        TargetID `json:"targetId"`
	Type            string   `json:"type"`
	Title           string   `json:"title"`
	URL             string   `json:"url"`
	Attached        bool     `json:"attached"`
	CanAccessOpener bool     `json:"canAccessOpener"`
}

// targetMethods answer clients that look around before they work. There are no child targets.
var targetMethods = map[string]method{
	"Target.setAutoAttach":      constant(empty{}),
	"Target.setDiscoverTargets": constant(empty{}),
	"Target.setRemoteLocations": constant(empty{}),
	"Target.getTargetInfo":      on((*session).targetGetTargetInfo),
	"Target.getTargets":         on((*session).targetGetTargets),
}

func (s *session) targetInfo() targetInfo {
	return targetInfo{TargetID: s.target.id(), Type: "page", Title: s.target.title(), URL: s.target.url(), Attached: true}
}

func (s *session) targetGetTargetInfo(empty) (any, error) {
	return map[string]targetInfo{"targetInfo": s.targetInfo()}, nil
}

func (s *session) targetGetTargets(empty) (any, error) {
	return map[string][]targetInfo{"targetInfos": {s.targetInfo()}}, nil
}

// cssMethods say that nodes have no styles, which keeps the Styles pane quiet.
var cssMethods = map[string]method{
	"CSS.enable":                           constant(empty{}),
	"CSS.disable":                          constant(empty{}),
	"CSS.trackComputedStyleUpdates":        constant(empty{}),
	"CSS.trackComputedStyleUpdatesForNode": constant(empty{}),
	"CSS.takeComputedStyleUpdates":         constant(map[string][]NodeID{"nodeIds": {}}),
	"CSS.getComputedStyleForNode":          constant(map[string][]empty{"computedStyle": {}}),
	"CSS.getInlineStylesForNode":           constant(empty{}),
	"CSS.getAnimatedStylesForNode":         constant(empty{}),
	"CSS.getPlatformFontsForNode":          constant(map[string][]empty{"fonts": {}}),
	"CSS.getEnvironmentVariables":          constant(map[string]empty{"environmentVariables": {}}),
	"CSS.getMatchedStylesForNode":          constant(map[string][]empty{"matchedCSSRules": {}, "pseudoElements": {}, "inherited": {}, "cssKeyframesRules": {}}),
}
