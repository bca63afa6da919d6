package cdpgw

import (
	"net/url"

	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects"
)

// pageState is what the client was told of the Page domain.
type pageState struct {
	enabled bool
	// frames are the child frames that the client knows, with their addresses.
	frames map[subjects.SourceID]frame
}

var pageMethods = map[string]method{
	"Page.enable":                              on((*session).pageEnable),
	"Page.disable":                             on((*session).pageDisable),
	"Page.getResourceTree":                     on((*session).pageGetResourceTree),
	"Page.getFrameTree":                        on((*session).pageGetFrameTree),
	"Page.getNavigationHistory":                on((*session).pageGetNavigationHistory),
	"Page.addScriptToEvaluateOnNewDocument":    constant(map[string]string{"identifier": "1"}),
	"Page.removeScriptToEvaluateOnNewDocument": constant(empty{}),
	"Page.setLifecycleEventsEnabled":           constant(empty{}),
	"Page.setAdBlockingEnabled":                constant(empty{}),
	"Page.bringToFront":                        constant(empty{}),
}

// frame is a frame as the protocol describes it.
type frame struct {
	ID                             FrameID  `json:"id"`
	ParentID                       FrameID  `json:"parentId,omitempty"`
	LoaderID                       string   `json:"loaderId"`
	Name                           string   `json:"name,omitempty"`
	URL                            string   `json:"url"`
	DomainAndRegistry              string   `json:"domainAndRegistry"`
	SecurityOrigin                 string   `json:"securityOrigin"`
	MimeType                       string   `json:"mimeType"`
	SecureContextType              string   `json:"secureContextType"`
	CrossOriginIsolatedContextType string   `json:"crossOriginIsolatedContextType"`
	GatedAPIFeatures               []string `json:"gatedAPIFeatures"`
}

// frameTree is a frame and those below it; Resources is nil in a tree without resources.
type frameTree struct {
	Frame       frame       `json:"frame"`
	ChildFrames []frameTree `json:"childFrames,omitempty"`
	Resources   *[]empty    `json:"resources,omitempty"`
}

type frameAttachedEvent struct {
	FrameID       FrameID `json:"frameId"`
	ParentFrameID FrameID `json:"parentFrameId"`
}

type frameNavigatedEvent struct {
	Frame frame  `json:"frame"`
	Type  string `json:"type"`
}

type frameDetachedEvent struct {
	FrameID FrameID `json:"frameId"`
	Reason  string  `json:"reason"`
}

func (s *session) pageEnable(empty) (any, error) {
	if !s.page.enabled {
		s.page.enabled = true
		s.page.frames = make(map[subjects.SourceID]frame)
		for _, src := range s.sources() {
			s.page.frames[src.ID] = s.childFrame(src)
		}
	}
	return nil, nil
}

func (s *session) pageDisable(empty) (any, error) {
	s.page = pageState{}
	return nil, nil
}

func (s *session) pageGetResourceTree(empty) (any, error) {
	return map[string]frameTree{"frameTree": s.frameTree(&[]empty{})}, nil
}

func (s *session) pageGetFrameTree(empty) (any, error) {
	return map[string]frameTree{"frameTree": s.frameTree(nil)}, nil
}

func (s *session) frameTree(resources *[]empty) frameTree {
	t := frameTree{Frame: s.mainFrame(), Resources: resources}
	for _, src := range s.sources() {
		t.ChildFrames = append(t.ChildFrames, frameTree{Frame: s.childFrame(src), Resources: resources})
	}
	return t
}

// navigationEntry is the one entry of the history that a target has.
type navigationEntry struct {
	ID             int    `json:"id"`
	URL            string `json:"url"`
	UserTypedURL   string `json:"userTypedURL"`
	Title          string `json:"title"`
	TransitionType string `json:"transitionType"`
}

func (s *session) pageGetNavigationHistory(empty) (any, error) {
	u := s.target.url()
	return map[string]any{"currentIndex": 0, "entries": []navigationEntry{{ID: 1, URL: u, UserTypedURL: u, Title: s.target.title(), TransitionType: "typed"}}}, nil
}

// mainFrame describes the frame of the whole target. It never navigates: DevTools would clear its panels.
func (s *session) mainFrame() frame {
	return s.frame(frame{ID: FrameID(s.target.id()), LoaderID: string(s.target.id()), URL: s.target.url()})
}

// childFrame describes the frame of a source.
func (s *session) childFrame(src *fold.Source) frame {
	return s.frame(frame{ID: frameOf(src.ID), ParentID: FrameID(s.target.id()), LoaderID: string(src.Generation), Name: src.Name(), URL: ownFrameURL(s.target.space, src)})
}

func (s *session) frame(f frame) frame {
	f.SecurityOrigin = originOf(f.URL)
	f.MimeType = "text/html"
	f.SecureContextType = "Secure"
	f.CrossOriginIsolatedContextType = "NotIsolated"
	f.GatedAPIFeatures = []string{}
	return f
}

// syncFrame tells the client of a source that came, changed its address or went.
func (s *session) syncFrame(src *fold.Source) {
	if !s.page.enabled {
		return
	}
	known, ok := s.page.frames[src.ID]
	if s.source(src.ID) == nil {
		if ok {
			delete(s.page.frames, src.ID)
			s.event("Page.frameDetached", frameDetachedEvent{FrameID: frameOf(src.ID), Reason: "remove"})
		}
		return
	}
	src = s.source(src.ID)
	f := s.childFrame(src)
	if !ok {
		s.event("Page.frameAttached", frameAttachedEvent{FrameID: f.ID, ParentFrameID: f.ParentID})
	}
	if !ok || f.LoaderID != known.LoaderID || f.URL != known.URL || f.Name != known.Name {
		s.page.frames[src.ID] = f
		s.event("Page.frameNavigated", frameNavigatedEvent{Frame: f, Type: "Navigation"})
	}
}

// originOf returns scheme and host of an address, or the address when it has none.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return address
	}
	return u.Scheme + "://" + u.Host
}
