package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/subjects"
)

// Root is the path below which everything is.
const Root = "/api/v1/"

// maxQuestion is the most bytes of a question.
const maxQuestion = 1 << 20

// ErrOptions says that Options cannot be used; the text names the field.
var ErrOptions = errors.New("httpapi: invalid options")

// Options configure a Handler.
type Options struct {
	// API returns what answers a request: with less in it where the asker may see
	// less. Its error is answered with 403. Required.
	API func(*http.Request) (query.API, error)
	// Guard refuses requests, such as those of foreign web pages; its error is answered with 403. Required.
	Guard func(*http.Request) error
	// Holds reports whether the asker may still ask; a stream ends when not. nil means for ever.
	Holds func(*http.Request) func() bool
	// Version is the version of the program, for the description.
	Version string
	// Limits bounds how long a question may take; zero fields mean the defaults.
	Limits subjects.Limits
	// Logger takes what an operator should know; nil means silence.
	Logger *slog.Logger
}

// Handler serves everything below Root. It is safe for concurrent use.
type Handler struct {
	o     Options
	limit time.Duration
	verbs map[string]*query.Verb
	spec  []byte
	// done ends streams.
	done   context.Context
	cancel context.CancelFunc
}

// New returns a handler. The error wraps ErrOptions.
func New(o Options) (*Handler, error) {
	switch {
	case o.API == nil:
		return nil, fmt.Errorf("%w: API is nil", ErrOptions)
	case o.Guard == nil:
		return nil, fmt.Errorf("%w: Guard is nil; pass the check of the Origin header", ErrOptions)
	}
	if o.Holds == nil {
		o.Holds = func(*http.Request) func() bool { return func() bool { return true } }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{o: o, limit: o.Limits.WithDefaults().Query, verbs: make(map[string]*query.Verb)}
	h.done, h.cancel = context.WithCancel(context.Background())
	for _, v := range query.Verbs() {
		h.verbs[v.Name] = v
	}
	var err error
	if h.spec, err = json.MarshalIndent(Describe(o.Version), "", "  "); err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return h, nil
}

// Close ends the streams that run. Other questions are answered to their end.
func (h *Handler) Close() { h.cancel() }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("Cache-Control", "no-store")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if err := h.o.Guard(r); err != nil {
		fail(w, http.StatusForbidden, &query.Error{Code: query.CodeRefused, Message: err.Error()})
		return
	}
	name := strings.TrimPrefix(r.URL.Path, Root)
	if name == "openapi.json" {
		head.Set("Content-Type", "application/json")
		_, _ = w.Write(h.spec)
		return
	}
	v := h.verbs[name]
	if v == nil {
		var names []string
		for _, v := range query.Verbs() {
			names = append(names, v.Name)
		}
		fail(w, http.StatusNotFound, &query.Error{Code: query.CodeNotFound, Message: fmt.Sprintf("there is no %.80q; there are %s, and openapi.json describes them", name, strings.Join(names, ", "))})
		return
	}
	question, err := h.question(w, r, v)
	if err != nil {
		answerError(w, err)
		return
	}
	api, err := h.o.API(r)
	if err != nil {
		fail(w, http.StatusForbidden, &query.Error{Code: query.CodeRefused, Message: err.Error()})
		return
	}
	if v.Name == "watch" && strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		h.stream(w, r, api, question)
		return
	}
	h.answer(w, r, v, api, question)
}

// question reads the question of a request as JSON.
func (h *Handler) question(w http.ResponseWriter, r *http.Request, v *query.Verb) ([]byte, error) {
	switch {
	case v.Changes && r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		return nil, &methodError{fmt.Sprintf("%s changes something, so it takes POST with a JSON body", v.Name)}
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return fromParameters(v.Question, r.URL.Query())
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, POST")
		return nil, &methodError{fmt.Sprintf("%s takes GET with parameters, or POST with a JSON body", v.Name)}
	}
	// A web page can send a form anywhere, but not JSON without asking first.
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
		return nil, query.Errorf(query.ErrMalformed, "a POST needs the header Content-Type: application/json, not %.80q", t)
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxQuestion))
	if err != nil {
		return nil, query.Errorf(query.ErrMalformed, "the question cannot be read: %v", err)
	}
	return data, nil
}

// methodError is an error that is answered with 405.
type methodError struct{ text string }

func (e *methodError) Error() string { return e.text }

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, v *query.Verb, api query.API, question []byte) {
	ctx, cancel := context.WithTimeout(r.Context(), h.limit+v.Wait)
	defer cancel()
	defer context.AfterFunc(h.done, cancel)()
	a, err := v.Call(ctx, api, question)
	if err != nil {
		answerError(w, err)
		return
	}
	data, err := json.Marshal(a)
	if err != nil {
		h.o.Logger.Error("an answer cannot be encoded", "verb", v.Name, "error", err)
		answerError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(data, '\n')) // The asker left if this fails.
}

// statuses are the status codes of errors.
var statuses = map[query.Code]int{
	query.CodeMalformed: http.StatusBadRequest, query.CodeNotFound: http.StatusNotFound, query.CodeGone: http.StatusGone,
	query.CodeRefused: http.StatusForbidden, query.CodeUnsupported: http.StatusNotImplemented, query.CodeBusy: http.StatusTooManyRequests,
	query.CodeTimeout: http.StatusGatewayTimeout, query.CodeUnavailable: http.StatusServiceUnavailable,
}

func answerError(w http.ResponseWriter, err error) {
	var method *methodError
	if errors.As(err, &method) {
		fail(w, http.StatusMethodNotAllowed, &query.Error{Code: query.CodeMalformed, Message: method.text})
		return
	}
	e := query.ErrorOf(err)
	status := statuses[e.Code]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	fail(w, status, e)
}

func fail(w http.ResponseWriter, status int, e *query.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(e) // The asker left if this fails.
}
