package subjects

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/natscope/natscope/subjects/network"
)

// subjectCase is one line of subjects.json.
type subjectCase struct {
	// Name says what the case shows.
	Name string `json:"name"`
	// Subject is the whole subject.
	Subject string `json:"subject"`
	// Kind is what the subject is parsed as: record, body, heartbeat or event; empty for subjects that are only built.
	Kind string `json:"kind,omitempty"`
	// Parts are the levels that were found, by name.
	Parts map[string]string `json:"parts,omitempty"`
	// Error is "subject" or "token" where the parser refuses it.
	Error string `json:"error,omitempty"`
}

// parseCase parses a subject as the case says.
func parseCase(c subjectCase) (parts map[string]string, again string, err error) {
	switch c.Kind {
	case "record":
		s, err := ParseRecord(c.Subject)
		parts := map[string]string{"space": string(s.Space), "source": string(s.Source), "generation": string(s.Generation), "plane": string(s.Plane)}
		if s.Topic != "" {
			parts["topic"] = s.Topic
		}
		return parts, s.String(), err
	case "body":
		s, err := ParseBody(c.Subject)
		return map[string]string{"space": string(s.Space), "source": string(s.Source), "generation": string(s.Generation), "request": string(s.Request), "direction": string(s.Direction)}, s.String(), err
	case "heartbeat":
		space, source, err := ParseHeartbeat(c.Subject)
		return map[string]string{"space": string(space), "source": string(source)}, Heartbeat(space, source), err
	}
	if c.Kind == "event" {
		source, gateway, session, err := ParseEvent(c.Subject)
		return map[string]string{"source": string(source), "gateway": string(gateway), "session": string(session)}, Event("dev", source, gateway, session), err
	}
	return nil, "", fmt.Errorf("unknown kind %q", c.Kind)
}

// builtSubjects are the subjects that are only built.
func builtSubjects() map[string]string {
	const space, source, generation = Space("dev"), SourceID("orders-1"), Generation("01jz0000000000000000000000")
	return map[string]string{
		"records of a space":    RecordsOf(space),
		"records of a source":   RecordsOfSource(space, source),
		"bodies of a space":     BodiesOf(space),
		"heartbeats of a space": HeartbeatsOf(space),
		"command":               Command(space, source, generation),
		"control":               Control(space, source, generation),
		"claim":                 ClaimSubject(space, source),
		"event of a session":    Event(space, source, "gw-1", "s-1"),
		"events of a gateway":   EventsOf(space, "gw-1"),
		"queries":               Query(space),
		"audit":                 Audit(space, "gw-1"),
		"audits of a space":     AuditsOf(space),
		"state":                 StateSubject(space, source, "t.0"),
	}
}

func TestSubjectVectors(t *testing.T) {
	cases := golden[subjectCase](t, "subjects.json")
	built := builtSubjects()
	for _, c := range cases {
		if c.Kind == "" {
			if built[c.Name] != c.Subject {
				t.Errorf("%s is %s, want %s", c.Name, built[c.Name], c.Subject)
			}
			delete(built, c.Name)
			continue
		}
		parts, again, err := parseCase(c)
		want := map[string]error{"": nil, "subject": ErrSubject, "token": ErrToken}[c.Error]
		if !errors.Is(err, want) || (err == nil) != (c.Error == "") {
			t.Errorf("%s: %.80s gives the error %v, want %v", c.Name, c.Subject, err, want)
			continue
		}
		if err != nil {
			continue
		}
		if fmt.Sprint(parts) != fmt.Sprint(c.Parts) || again != c.Subject {
			t.Errorf("%s: %s has the parts %v and is built as %s", c.Name, c.Subject, parts, again)
		}
	}
	for name := range built {
		t.Errorf("subjects.json has no case %q", name)
	}
}

func TestEventTopic(t *testing.T) {
	for topic, want := range map[string]string{
		"orders":              "orders",
		"orders.created":      "orders.created",
		"Orders.created":      Token("Orders") + ".created",
		"":                    Token(""),
		"a..b":                "a." + Token("") + ".b",
		"*.>":                 Token("*") + "." + Token(">"),
		"a.b.c.d.e.f.g.h":     "a.b.c.d.e.f.g.h",
		"a.b.c.d.e.f.g.h.i":   Token("a.b.c.d.e.f.g.h.i"),
		"with space.and/more": Token("with space") + "." + Token("and/more"),
	} {
		if got := EventTopic(topic); got != want {
			t.Errorf("topic %q becomes %s, want %s", topic, got, want)
		}
	}
	long := strings.Repeat("x", MaxToken)
	topic := EventTopic(strings.Repeat(strings.Repeat("Y", 200)+".", 7) + "z")
	s := RecordSubject{Space(long), SourceID(long), Generation(long), PlaneEvent, topic}.String()
	if len(s) > MaxSubject {
		t.Errorf("the longest event subject has %d bytes", len(s))
	}
	if _, err := ParseRecord(s); err != nil {
		t.Error(err)
	}
}

func TestParseState(t *testing.T) {
	source, part, err := ParseState("dev", StateSubject("dev", "orders-1", "t.12"))
	if err != nil || source != "orders-1" || part != "t.12" {
		t.Errorf("got %s, %s, %v", source, part, err)
	}
	for subject, want := range map[string]error{
		"$KV.NATSCOPE_STATE_other.a.head": ErrSubject,
		"$KV.NATSCOPE_STATE_dev.a":        ErrSubject,
		"$KV.NATSCOPE_STATE_dev.a.":       ErrSubject,
		"$KV.NATSCOPE_STATE_dev.A.head":   ErrToken,
		"":                                ErrSubject,
	} {
		if _, _, err := ParseState("dev", subject); !errors.Is(err, want) {
			t.Errorf("%q gives the error %v, want %v", subject, err, want)
		}
	}
}

func TestIDs(t *testing.T) {
	for want, got := range map[SourceID]SourceID{
		"orders-web-1":                     NewSourceID("orders", "web-1"),
		"orders":                           NewSourceID("orders", ""),
		SourceID(Token("My Service-host")): NewSourceID("My Service", "host"),
		SourceID(Token("")):                NewSourceID("", ""),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// FuzzParseRecord shows that what is parsed as a record subject is built as the same subject.
func FuzzParseRecord(f *testing.F) {
	f.Add("natscope.dev.rec.orders.g1.net")
	f.Add("natscope.dev.rec.orders.g1.event.orders.created")
	f.Add("natscope.dev.rec.orders.g1.life.x")
	f.Fuzz(func(t *testing.T, subject string) {
		s, err := ParseRecord(subject)
		if err != nil {
			if !errors.Is(err, ErrSubject) && !errors.Is(err, ErrToken) {
				t.Fatalf("the error %v is none of this package", err)
			}
			return
		}
		if s.String() != subject || !IsToken(string(s.Source)) || len(subject) > MaxSubject {
			t.Fatalf("%q was read as %+v", subject, s)
		}
	})
}

// FuzzParseBody does the same for the subjects of bodies.
func FuzzParseBody(f *testing.F) {
	f.Add(BodySubject{"dev", "orders", "g1", network.RequestID("r1"), ResponseBody}.String())
	f.Add("natscope.dev.body.orders.g1.r1.both")
	f.Fuzz(func(t *testing.T, subject string) {
		s, err := ParseBody(subject)
		if err != nil {
			if !errors.Is(err, ErrSubject) && !errors.Is(err, ErrToken) {
				t.Fatalf("the error %v is none of this package", err)
			}
			return
		}
		if s.String() != subject {
			t.Fatalf("%q was read as %+v", subject, s)
		}
	})
}
