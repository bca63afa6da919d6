package ingest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

// ProtocolVersion is the version of the protocol between page and ingest. It
// is the number in the WebSocket subprotocol "natscope.1".
const ProtocolVersion = 1

// The types of messages. A connection begins with the page's hello, which is
// answered by welcome or rejected. Then the page sends numbered messages
// (records, body, update), and the server acknowledges their numbers.
const (
	// MsgHello is the page's first message: a Hello.
	MsgHello = "hello"
	// MsgRecords carries Records. Numbered.
	MsgRecords = "records"
	// MsgBody carries a BodyPart. Numbered.
	MsgBody = "body"
	// MsgUpdate carries an Update. Numbered.
	MsgUpdate = "update"
	// MsgPing asks for a pong; each side may send it.
	MsgPing = "ping"
	// MsgPong answers a ping.
	MsgPong = "pong"
	// MsgAnswer is the page's answer to a command: a CommandAnswer.
	MsgAnswer = "answer"
	// MsgPart is a piece of a long answer: an AnswerPart.
	MsgPart = "part"
	// MsgAsk asks the server for something that other sources know: a PageQuestion.
	MsgAsk = "ask"
	// MsgReply answers it: a Reply.
	MsgReply = "reply"
	// MsgEvent tells of a pick in the page, or tells a session of something: a PageEvent.
	MsgEvent = "event"
	// MsgBye is the page's goodbye: a Bye. The source closes at once.
	MsgBye = "bye"
	// MsgWelcome admits the page: a Welcome.
	MsgWelcome = "welcome"
	// MsgRejected refuses the page, or ends its connection: a Rejected.
	MsgRejected = "rejected"
	// MsgAck acknowledges every numbered message up to Ack.N.
	MsgAck = "ack"
	// MsgResnapshot asks for the whole tree again. Tree records before the snapshot are ignored.
	MsgResnapshot = "resnapshot"
	// MsgCommand asks the page for something: a Command.
	MsgCommand = "command"
	// MsgProblem tells of a message that could not be read and was passed over: a Problem.
	MsgProblem = "problem"
)

// The codes of a rejection.
const (
	// CodeToken means that the token is missing or wrong.
	CodeToken = "token"
	// CodeVersion means that page and server speak different versions.
	CodeVersion = "version"
	// CodeMessage means that a message could not be read.
	CodeMessage = "message"
	// CodeRate means that the page sent more than the server takes.
	CodeRate = "rate"
	// CodeBusy means that the server has as many pages as it takes.
	CodeBusy = "busy"
	// CodeReplaced means that another connection took this one's place.
	CodeReplaced = "replaced"
	// CodeEnded means that the session ended; a new one may begin.
	CodeEnded = "ended"
	// CodeClosing means that the server stops.
	CodeClosing = "closing"
	// CodeInternal means that the server could not start a producer.
	CodeInternal = "internal"
)

// ErrMessage says that a message of a page is malformed. The text around it names the field.
var ErrMessage = errors.New("ingest: malformed message")

// ErrVersion says that a page speaks another version of the protocol.
var ErrVersion = errors.New("ingest: other protocol version")

// maxField bounds every short text that a page sends, in bytes.
const maxField = 4096

// Hello is what a page says of itself.
type Hello struct {
	// Version is the page's ProtocolVersion.
	Version int `json:"version"`
	// ID is the source id that the page would like to have, any text; empty asks for a fresh one.
	ID string `json:"id,omitempty"`
	// Realm names the page load. A reconnect of the same load has the same realm.
	Realm source.RealmID `json:"realm"`
	// Now is the page's clock when it sent the hello, in milliseconds: the clock of every record's t.
	Now float64 `json:"now"`
	// Name is the shown name; by default the title, or else the address.
	Name string `json:"name,omitempty"`
	// URL, Title and Visible are the page's.
	URL     string `json:"url,omitempty"`
	Title   string `json:"title,omitempty"`
	Visible *bool  `json:"visible,omitempty"`
	// Kind is "host" for a process and "client" or nothing for a page; a process
	// tells its Hostname and PID.
	Kind     string `json:"kind,omitempty"`
	Hostname string `json:"hostname,omitempty"`
	PID      int    `json:"pid,omitempty"`
	// Runtime names the browser and Library the client, each with its version.
	Runtime string `json:"runtime,omitempty"`
	Library string `json:"library,omitempty"`
	// Capabilities lists the operations that the page answers.
	Capabilities []string `json:"capabilities,omitempty"`
}

// Records is a batch of records of one plane.
type Records struct {
	// Plane is tree, net, console or event.
	Plane subjects.Plane `json:"plane"`
	// Dropped is how many records of the plane the page lost before these.
	Dropped uint64 `json:"dropped,omitempty"`
	// Records holds the records in order; t is on the page's clock.
	Records []subjects.Record `json:"records"`
}

// BodyPart is a piece of a body, or its end, or both.
type BodyPart struct {
	Request   network.RequestID  `json:"request"`
	Direction subjects.Direction `json:"dir"`
	// Offset is where Data belongs in the body, in bytes.
	Offset int64 `json:"offset"`
	// Data is base64 of the bytes.
	Data string `json:"data,omitempty"`
	// End is empty, or why the body ends, as subjects.BodyComplete and its neighbours say.
	End string `json:"end,omitempty"`
	// Total is the size of the whole body as far as the page knows it; only with End.
	Total int64 `json:"total,omitempty"`
}

// Bye is a page's goodbye.
type Bye struct {
	// Reason is a sentence for people.
	Reason string `json:"reason,omitempty"`
}

// Welcome admits a page.
type Welcome struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	// Source is the id that the page has, Asked the one it asked for, when it got another.
	Source     subjects.SourceID   `json:"source"`
	Asked      string              `json:"asked,omitempty"`
	Generation subjects.Generation `json:"generation"`
	Space      subjects.Space      `json:"space"`
	// Resumed says that the session goes on: the page repeats what comes after
	// Last. Otherwise the generation is new: the page starts its numbers at 1
	// again and sends its whole tree.
	Resumed bool `json:"resumed"`
	// Last is the number of the last message that the server has.
	Last uint64 `json:"last"`
	// Resnapshot asks for the whole tree.
	Resnapshot bool       `json:"resnapshot"`
	Limits     PageLimits `json:"limits"`
}

// PageLimits tells a page what it may send and keep.
type PageLimits struct {
	RequestBodyBytes  int64 `json:"requestBodyBytes"`
	ResponseBodyBytes int64 `json:"responseBodyBytes"`
	BodyChunkBytes    int   `json:"bodyChunkBytes"`
	Nodes             int   `json:"nodes"`
	Depth             int   `json:"depth"`
	// Handles is how many live objects one session may hold.
	Handles int `json:"handles"`
	// CordisNodes is how many nodes the tree of a Cordis runtime may have.
	CordisNodes int `json:"cordisNodes"`
	// MessageBytes bounds one message of the page, RecordsPerSecond what it sends for long.
	MessageBytes     int `json:"messageBytes"`
	RecordsPerSecond int `json:"recordsPerSecond"`
	// ReconnectMin and ReconnectMax bound the delay before a reconnect, in milliseconds.
	ReconnectMin int64 `json:"reconnectMin"`
	ReconnectMax int64 `json:"reconnectMax"`
}

// Rejected refuses a page or ends its connection.
type Rejected struct {
	Type string `json:"type"`
	// Code is one of the Code constants.
	Code string `json:"code"`
	// Reason is a sentence for people that says what to do.
	Reason string `json:"reason"`
	// Retry says whether it makes sense to connect again.
	Retry bool `json:"retry"`
}

// Ack acknowledges every numbered message up to N.
type Ack struct {
	Type string `json:"type"`
	N    uint64 `json:"n"`
}

// Problem tells of a message that was passed over.
type Problem struct {
	Type string `json:"type"`
	// N is the message's number, 0 if it could not be read.
	N uint64 `json:"n,omitempty"`
	// Reason is a sentence for people.
	Reason string `json:"reason"`
}

// Message is one message of a page. Exactly the field that belongs to Type is set; none for ping and pong.
type Message struct {
	Type string
	// N numbers records, body and update messages of a session, from 1.
	N       uint64
	Hello   *Hello
	Records *Records
	Body    *BodyPart
	// Data is the decoded Body.Data.
	Data   []byte
	Update *source.Update
	Answer *CommandAnswer
	Part   *AnswerPart
	Ask    *PageQuestion
	Event  *PageEvent
	Bye    *Bye
}

// ParseMessage reads one message of a page. A message of an unknown type is
// returned with nothing but its type, and unknown fields are ignored. The
// error wraps ErrMessage, and ErrVersion for the hello of another version; the
// message then has its type and number, as far as they could be read.
func ParseMessage(data []byte) (Message, error) {
	if !utf8.Valid(data) {
		return Message{}, fmt.Errorf("%w: not valid UTF-8", ErrMessage)
	}
	var head struct {
		Type string `json:"type"`
		N    uint64 `json:"n"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	m := Message{Type: head.Type, N: head.N}
	var err error
	switch m.Type {
	case "":
		err = errors.New("type is missing")
	case MsgHello:
		m.Hello, err = parse[Hello](data, (*Hello).check)
	case MsgRecords:
		m.Records, err = parse[Records](data, (*Records).check)
	case MsgBody:
		m.Body, err = parse[BodyPart](data, (*BodyPart).check)
		if err == nil {
			m.Data, err = base64.StdEncoding.DecodeString(m.Body.Data)
		}
	case MsgUpdate:
		m.Update, err = parse[source.Update](data, checkUpdate)
	case MsgAnswer:
		m.Answer, err = parse[CommandAnswer](data, (*CommandAnswer).check)
	case MsgAsk:
		m.Ask, err = parse[PageQuestion](data, (*PageQuestion).check)
	case MsgPart:
		m.Part, err = parse[AnswerPart](data, (*AnswerPart).check)
	case MsgEvent:
		m.Event, err = parse[PageEvent](data, (*PageEvent).check)
	case MsgBye:
		m.Bye, err = parse[Bye](data, (*Bye).check)
	}
	if err == nil && m.Numbered() && m.N == 0 {
		err = errors.New("n is missing; it counts from 1")
	}
	if err != nil {
		return Message{Type: m.Type, N: m.N}, fmt.Errorf("%w: %.40s: %w", ErrMessage, m.Type, err)
	}
	return m, nil
}

// Numbered reports whether messages of this type carry a number and are acknowledged.
func (m Message) Numbered() bool {
	return m.Type == MsgRecords || m.Type == MsgBody || m.Type == MsgUpdate
}

func parse[T any](data []byte, check func(*T) error) (*T, error) {
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	return v, check(v)
}

func (h *Hello) check() error {
	if h.Version != ProtocolVersion {
		return fmt.Errorf("%w: the page speaks version %d, this server version %d", ErrVersion, h.Version, ProtocolVersion)
	}
	switch {
	case h.Realm == "" || len(h.Realm) > 128:
		return errors.New("realm must have 1 to 128 bytes")
	case len(h.ID) > 256:
		return errors.New("id has more than 256 bytes")
	case len(h.Capabilities) > 32:
		return errors.New("more than 32 capabilities")
	}
	h.Name, h.URL, h.Title = clip(h.Name), clip(h.URL), clip(h.Title)
	h.Runtime, h.Library, h.Hostname = clip(h.Runtime), clip(h.Library), clip(h.Hostname)
	return nil
}

func (r *Records) check() error {
	switch r.Plane {
	case subjects.PlaneTree, subjects.PlaneNet, subjects.PlaneConsole, subjects.PlaneEvent:
	default:
		return fmt.Errorf("plane %.40q is none that a page may write", r.Plane)
	}
	for i := range r.Records {
		rec := &r.Records[i]
		if rec.Topic == "" || len(rec.Topic) > 256 {
			return fmt.Errorf("record %d: topic must have 1 to 256 bytes", i)
		}
		if rec.T < -1e15 || rec.T > 1e15 {
			return fmt.Errorf("record %d: t is not a time in milliseconds", i)
		}
		// A record is a line in its frame. The client writes no line breaks, but any JSON is welcome.
		if bytes.ContainsAny(rec.Data, "\n\r") {
			var b bytes.Buffer
			if err := json.Compact(&b, rec.Data); err != nil {
				return fmt.Errorf("record %d: %w", i, err)
			}
			rec.Data = b.Bytes()
		}
	}
	return nil
}

func (b *BodyPart) check() error {
	switch {
	case !subjects.IsToken(string(b.Request)):
		return fmt.Errorf("request %.80q: %w", b.Request, subjects.ErrToken)
	case b.Direction != subjects.RequestBody && b.Direction != subjects.ResponseBody:
		return fmt.Errorf("dir %.40q is neither req nor res", b.Direction)
	case b.Offset < 0 || b.Total < 0:
		return errors.New("offset and total must not be negative")
	}
	switch b.End {
	case "", subjects.BodyComplete, subjects.BodyTruncated, subjects.BodyAborted:
	default:
		b.End = subjects.BodyAborted
	}
	return nil
}

func checkUpdate(u *source.Update) error {
	for _, s := range []*string{u.URL, u.Title} {
		if s != nil {
			*s = clip(*s)
		}
	}
	return nil
}

func (b *Bye) check() error {
	b.Reason = clip(b.Reason)
	return nil
}

// clip cuts a text to maxField bytes without splitting a character.
func clip(s string) string {
	if len(s) <= maxField {
		return s
	}
	n := maxField
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
