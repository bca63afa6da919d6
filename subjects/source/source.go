// Package source holds what a source says of itself: the payloads of the life
// plane and their fold.
//
// It owns the descriptor, its validation, and the life of one generation. It
// must not know subjects, NATS, CDP or how presence is observed. It starts no
// goroutine; a State is not safe for concurrent use.
package source

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The topics of the life plane.
const (
	// TopicOpen carries a Descriptor and is the first record of a generation.
	TopicOpen = "open"
	// TopicUpdate carries an Update.
	TopicUpdate = "update"
	// TopicNotice carries a Notice.
	TopicNotice = "notice"
	// TopicClose carries a Close and is the last record of a generation.
	TopicClose = "close"
)

// ErrPayload says that a life record is malformed. The text around it names the field.
var ErrPayload = errors.New("source: malformed payload")

// Kind says what a source is.
type Kind string

// The kinds of sources. Readers treat an unknown kind as KindHost.
const (
	// KindHost is a process: a Go service, Node, Deno.
	KindHost Kind = "host"
	// KindClient is a browser page.
	KindClient Kind = "client"
)

// RealmID names the world that owns a source's live objects. It survives a
// transport reconnect of the same process or page, and nothing else.
type RealmID string

// Descriptor is what a source says of itself when it opens.
type Descriptor struct {
	// Name is the name that people gave the source, exactly; any text.
	Name string `json:"name"`
	// Kind is host or client.
	Kind Kind `json:"kind"`
	// Realm names the world behind this generation.
	Realm RealmID `json:"realm"`
	// Origin is the wall-clock time at which the source's clock read zero, in milliseconds since the Unix epoch.
	Origin float64 `json:"origin"`
	// Service and Instance are the parts that the source's id was made of, when it was made so.
	Service  string `json:"service,omitempty"`
	Instance string `json:"instance,omitempty"`
	// Runtime names language and version, such as "go1.26.8" or a browser's name.
	Runtime string `json:"runtime,omitempty"`
	// Hostname is the machine.
	Hostname string `json:"hostname,omitempty"`
	// PID is the process id, 0 for pages.
	PID int `json:"pid,omitempty"`
	// URL and Title are those of a page; a process may name its own address.
	URL   string `json:"url,omitempty"`
	Title string `json:"title,omitempty"`
	// Visible says whether a page is shown; nil where that means nothing.
	Visible *bool `json:"visible,omitempty"`
	// Capabilities lists the operations that the realm answers: names of methods
	// of package realm, or of groups of them.
	Capabilities []string `json:"capabilities,omitempty"`
	// Library names the producer and its version.
	Library string `json:"library,omitempty"`
}

// Who describes the program in a few words, for people who have to find it:
// its name, and its process and machine or its address. It is valid UTF-8 and
// has at most about 300 bytes.
func (d Descriptor) Who() string {
	cut := func(s string) string {
		if len(s) > 100 {
			s = s[:100]
		}
		return strings.ToValidUTF8(s, "")
	}
	out := strconv.Quote(cut(d.Name))
	if d.PID != 0 {
		out += ", process " + strconv.Itoa(d.PID)
	}
	if d.Hostname != "" {
		out += " on " + cut(d.Hostname)
	}
	if d.Kind == KindClient && d.URL != "" {
		out += ", page " + cut(d.URL)
	}
	return out
}

// Update changes what may change while a source lives. A nil field stays as it was.
type Update struct {
	// URL is the new address of a page or process.
	URL *string `json:"url,omitempty"`
	// Title is the new title of a page.
	Title *string `json:"title,omitempty"`
	// Visible says whether a page is shown now.
	Visible *bool `json:"visible,omitempty"`
	// Capabilities are all operations that the realm answers now.
	Capabilities *[]string `json:"capabilities,omitempty"`
}

// Notice is something that went wrong with the source as a whole, such as
// another program that wanted its id. Readers show it among its faults.
type Notice struct {
	// Text is a sentence for people.
	Text string `json:"text"`
}

// Close says that a generation ends.
type Close struct {
	// Reason is a sentence for people.
	Reason string `json:"reason,omitempty"`
}

// State is the fold of the life plane of one generation.
type State struct {
	// Descriptor is what the source last said of itself.
	Descriptor Descriptor `json:"descriptor"`
	// Opened says that an open record was folded.
	Opened bool `json:"opened"`
	// OpenedAt is the time of the open record on the source's clock, in milliseconds.
	OpenedAt float64 `json:"openedAt"`
	// Closed says that the generation said goodbye.
	Closed bool `json:"closed,omitempty"`
	// ClosedAt is the time of the close record on the source's clock, in milliseconds.
	ClosedAt float64 `json:"closedAt,omitempty"`
	// Reason is why it closed.
	Reason string `json:"reason,omitempty"`
}

// Wall converts a time on the source's clock to milliseconds since the Unix epoch.
func (s *State) Wall(t float64) float64 { return s.Descriptor.Origin + t }

// Apply folds one life record. An error wraps ErrPayload and leaves the state
// as it was. Unknown topics change nothing.
func (s *State) Apply(t float64, topic string, data json.RawMessage) error {
	switch topic {
	case TopicOpen:
		d, err := ParseDescriptor(data)
		if err != nil {
			return err
		}
		*s = State{Descriptor: d, Opened: true, OpenedAt: t}
	case TopicUpdate:
		var u Update
		if err := json.Unmarshal(data, &u); err != nil {
			return fmt.Errorf("%w: update: %w", ErrPayload, err)
		}
		s.update(u)
	case TopicNotice:
		if _, err := ParseNotice(data); err != nil {
			return err
		}
	case TopicClose:
		var c Close
		if err := json.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("%w: close: %w", ErrPayload, err)
		}
		s.Closed, s.ClosedAt, s.Reason = true, t, c.Reason
	}
	return nil
}

func (s *State) update(u Update) {
	d := &s.Descriptor
	if u.URL != nil {
		d.URL = *u.URL
	}
	if u.Title != nil {
		d.Title = *u.Title
	}
	if u.Visible != nil {
		v := *u.Visible
		d.Visible = &v
	}
	if u.Capabilities != nil {
		d.Capabilities = slices.Clone(*u.Capabilities)
	}
}

// ParseNotice parses and checks a notice. The error wraps ErrPayload.
func ParseNotice(data json.RawMessage) (Notice, error) {
	var n Notice
	if err := json.Unmarshal(data, &n); err != nil {
		return Notice{}, fmt.Errorf("%w: notice: %w", ErrPayload, err)
	}
	if n.Text == "" {
		return Notice{}, fmt.Errorf("%w: notice: text is empty", ErrPayload)
	}
	return n, nil
}

// ParseDescriptor parses and checks a descriptor. The error wraps ErrPayload and names the field.
func ParseDescriptor(data json.RawMessage) (Descriptor, error) {
	var d Descriptor
	if err := json.Unmarshal(data, &d); err != nil {
		return Descriptor{}, fmt.Errorf("%w: open: %w", ErrPayload, err)
	}
	switch {
	case d.Realm == "":
		return Descriptor{}, fmt.Errorf("%w: open: realm is empty", ErrPayload)
	case len(d.Realm) > 256:
		return Descriptor{}, fmt.Errorf("%w: open: realm has %d bytes, the limit is 256", ErrPayload, len(d.Realm))
	case d.Origin < 0 || d.Origin > 1e15:
		return Descriptor{}, fmt.Errorf("%w: open: origin %v is not a time in milliseconds", ErrPayload, d.Origin)
	}
	if d.Kind != KindClient {
		d.Kind = KindHost
	}
	return d, nil
}
