package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/natscope/natscope/subjects"
)

const (
	// helloWait is how long a socket may stay without a hello.
	helloWait = 5 * time.Second
	// aliveWait is how long the holder of an id has to answer before it loses it.
	aliveWait = time.Second
)

// errClosing says that the server stops.
var errClosing = errors.New("ingest: the server stops")

// serveIngest is the life of one socket, in the HTTP server's goroutine.
func (s *Server) serveIngest(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		http.Error(w, "this is the WebSocket of natscope's page client; load /client.js in a page instead", http.StatusUpgradeRequired)
		return
	}
	offers := websocket.Subprotocols(r)
	header := http.Header{}
	// Whatever version is offered is selected, since a browser reads no
	// rejection from a socket whose subprotocol was not.
	if v := versionOffered(offers); v != "" {
		header.Set("Sec-WebSocket-Protocol", v)
	}
	up := websocket.Upgrader{
		CheckOrigin:      func(*http.Request) bool { return true }, // admitOrigin has
		HandshakeTimeout: writeWait,
	}
	ws, err := up.Upgrade(w, r, header)
	if err != nil {
		return // Upgrade has answered
	}
	c := newConn(ws)
	if err := s.register(c); err != nil {
		c.abort()
		return
	}
	defer s.unregister(c)
	go c.write()
	s.read(c, offers)
}

// register adds a connection, unless the server is closed.
func (s *Server) register(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosing
	}
	s.conns[c] = true
	s.wg.Add(1)
	return nil
}

func (s *Server) unregister(c *conn) {
	close(c.done)
	c.abort()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.wg.Done()
}

// read is the reader goroutine: it admits the page and takes its messages until the socket ends.
func (s *Server) read(c *conn, offers []string) {
	if r, ok := s.refuse(offers); ok {
		s.reject(c, r)
		return
	}
	c.ws.SetReadLimit(2 * maxMessageBytes)
	_ = c.ws.SetReadDeadline(time.Now().Add(helloWait))
	hello, err := readHello(c.ws)
	if err != nil {
		code := CodeMessage
		if errors.Is(err, ErrVersion) {
			code = CodeVersion
		}
		s.reject(c, Rejected{Code: code, Reason: err.Error()})
		return
	}
	x, welcome, err := s.admit(c, hello)
	if err != nil {
		code := CodeInternal
		if errors.Is(err, errClosing) {
			code = CodeClosing
		}
		s.reject(c, Rejected{Code: code, Reason: err.Error(), Retry: true})
		return
	}
	s.log.Info("ingest: page admitted", "source", welcome.Source, "generation", welcome.Generation, "resumed", welcome.Resumed, "url", withoutQuery(hello.URL))
	c.ws.SetPongHandler(func(string) error { return c.ws.SetReadDeadline(time.Now().Add(readWait)) })
	x.serve(c)
}

// refuse checks what can be checked before the hello.
func (s *Server) refuse(offers []string) (Rejected, bool) {
	want := versionProtocol + strconv.Itoa(ProtocolVersion)
	if v := versionOffered(offers); v != want {
		return Rejected{Code: CodeVersion, Reason: fmt.Sprintf("the page offers the protocol %q, this server speaks %q; load client.js from this server", v, want)}, true
	}
	if !tokenOffered(offers, s.o.Token) {
		return Rejected{Code: CodeToken, Reason: "the token is missing or wrong; copy the script line that natscope prints now"}, true
	}
	s.mu.Lock()
	n := len(s.conns)
	s.mu.Unlock()
	if n > s.o.MaxPages {
		return Rejected{Code: CodeBusy, Reason: fmt.Sprintf("there are %d pages already, the most that this server takes", s.o.MaxPages), Retry: true}, true
	}
	return Rejected{}, false
}

// reject sends a rejection and waits for the page to close.
func (s *Server) reject(c *conn, r Rejected) {
	s.count(func(st *Stats) { st.Rejected[r.Code]++ })
	s.log.Warn("ingest: page refused", "code", r.Code, "reason", r.Reason)
	c.finish(r)
	_ = c.ws.SetReadDeadline(time.Now().Add(writeWait))
	c.drainReads()
}

// drainReads reads until the socket ends. A close frame that meets unread data
// becomes a reset, and the page would not see the reason.
func (c *conn) drainReads() {
	for {
		if _, _, err := c.ws.NextReader(); err != nil {
			return
		}
	}
}

func readHello(ws *websocket.Conn) (*Hello, error) {
	_, data, err := ws.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("no hello came within %v: %w", helloWait, err)
	}
	m, err := ParseMessage(data)
	if err != nil {
		return nil, err
	}
	if m.Hello == nil {
		return nil, fmt.Errorf("%w: the first message is %.40q, not %q", ErrMessage, m.Type, MsgHello)
	}
	return m.Hello, nil
}

// admit finds the session of a page or starts one, and attaches the connection
// to it. The welcome is enqueued before anything else.
func (s *Server) admit(c *conn, h *Hello) (*session, Welcome, error) {
	asked := subjects.SourceID(subjects.Token(h.ID))
	if h.ID == "" {
		asked = subjects.SourceID("page-" + strings.ToLower(rand.Text())[:10])
	}
	for {
		x, fresh, err := s.claim(h, asked)
		if err != nil {
			return nil, Welcome{}, err
		}
		if fresh {
			if err := x.start(); err != nil {
				x.end("the producer could not start")
				return nil, Welcome{}, err
			}
		}
		if w, ok := x.attach(c, h, fresh); ok {
			return x, w, nil
		}
		// The session ended in between: the next round starts another one.
	}
}

// claim returns the session of the hello's realm, or a new one under the first
// id that is free. A holder that does not answer loses its id.
func (s *Server) claim(h *Hello, asked subjects.SourceID) (x *session, fresh bool, err error) {
	id, n := asked, 1
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, false, errClosing
		}
		if x := s.byRealm[h.Realm]; x != nil {
			s.mu.Unlock()
			<-x.started
			return x, false, nil
		}
		holder := s.byID[id]
		if holder == nil {
			x := newSession(s, id, h)
			s.byID[id], s.byRealm[h.Realm] = x, x
			s.mu.Unlock()
			return x, true, nil
		}
		s.mu.Unlock()
		if n == 1 && !holder.answers(aliveWait) {
			holder.end("a newer load of the page took its place")
			continue
		}
		n++
		id = numbered(asked, n)
	}
}

// numbered returns id with a number, cut so that it stays a token.
func numbered(id subjects.SourceID, n int) subjects.SourceID {
	tail := "-" + strconv.Itoa(n)
	return id[:min(len(id), subjects.MaxToken-len(tail))] + subjects.SourceID(tail)
}

// closeTimeout bounds how long the producer of an ended session is flushed.
const closeTimeout = 5 * time.Second

// release forgets a session and closes its producer in a goroutine of its own.
func (s *Server) release(x *session, reason string) {
	s.mu.Lock()
	if s.byID[x.id] == x {
		delete(s.byID, x.id)
	}
	if s.byRealm[x.realm] == x {
		delete(s.byRealm, x.realm)
	}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		<-x.started
		if x.prod == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := x.prod.Close(ctx); err != nil {
			s.log.Warn("ingest: page closed, its last records may be lost", "source", x.id, "reason", reason, "error", err)
			return
		}
		s.log.Info("ingest: page closed", "source", x.id, "reason", reason)
	}()
}

// withoutQuery cuts a page's address to what a log may hold: what comes behind
// the path, and a user's name before the host, may be secrets.
func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
