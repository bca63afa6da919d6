package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/natscope/natscope/query"
	"github.com/natscope/natscope/store/command"
	"github.com/natscope/natscope/store/fold"
	"github.com/natscope/natscope/subjects/realm"
)

// evaluateParams are those of the protocol that questions need.
type evaluateParams struct {
	Expression        string `json:"expression"`
	ReturnByValue     bool   `json:"returnByValue,omitempty"`
	GeneratePreview   bool   `json:"generatePreview,omitempty"`
	AwaitPromise      bool   `json:"awaitPromise,omitempty"`
	ReplMode          bool   `json:"replMode,omitempty"`
	ThrowOnSideEffect bool   `json:"throwOnSideEffect,omitempty"`
	Timeout           int    `json:"timeout,omitempty"`
}

// remoteObject is a result as realms describe it.
type remoteObject struct {
	Type                string          `json:"type"`
	Subtype             string          `json:"subtype"`
	ClassName           string          `json:"className"`
	Value               json.RawMessage `json:"value"`
	UnserializableValue string          `json:"unserializableValue"`
	Description         string          `json:"description"`
	Preview             *objectPreview  `json:"preview"`
}

type objectPreview struct {
	Subtype    string            `json:"subtype"`
	Overflow   bool              `json:"overflow"`
	Properties []propertyPreview `json:"properties"`
}

type propertyPreview struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value string `json:"value"`
}

type evaluateResult struct {
	Result    remoteObject `json:"result"`
	Exception *struct {
		Text      string        `json:"text"`
		Exception *remoteObject `json:"exception"`
	} `json:"exceptionDetails"`
}

// Evaluate implements query.API.
func (e *Engine) Evaluate(ctx context.Context, q query.EvaluateRequest) (query.EvaluateAnswer, error) {
	switch {
	case strings.TrimSpace(q.Expression) == "":
		return query.EvaluateAnswer{}, query.Errorf(query.ErrMalformed, "expression is empty")
	case len(q.Expression) > query.MaxExpression:
		return query.EvaluateAnswer{}, query.Errorf(query.ErrMalformed, "expression has %d bytes, the limit is %d", len(q.Expression), query.MaxExpression)
	}
	var at command.At
	var err error
	e.view(func(v view) {
		var src *fold.Source
		if src, err = v.one(q.Source); err == nil {
			at, err = e.reach(src, realm.MethodEvaluate, !q.Pure)
		}
	})
	if err != nil {
		return query.EvaluateAnswer{}, err
	}
	timeout := bound(q.TimeoutMS, query.DefaultEvaluateMS, query.MaxEvaluateMS)
	if e.who == "" {
		// Who may only look holds no program up, either.
		timeout = min(timeout, int(realm.LookTimeout.Milliseconds()))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(timeout)*time.Millisecond+2*time.Second)
	defer cancel()
	var r evaluateResult
	err = e.command(ctx, at, realm.MethodEvaluate, evaluateParams{
		Expression: q.Expression, ReturnByValue: q.ByValue, GeneratePreview: !q.ByValue, AwaitPromise: true, ReplMode: true, ThrowOnSideEffect: q.Pure, Timeout: timeout,
	}, &r)
	if err != nil {
		return query.EvaluateAnswer{}, err
	}
	out := query.EvaluateAnswer{Source: at.Source, Type: r.Result.Type, Class: clean(r.Result.ClassName, 200), Text: clean(r.Result.text(), maxText), Value: r.Result.Value}
	if x := r.Exception; x != nil {
		out.Value, out.Text = nil, ""
		out.Exception = x.Text
		if x.Exception != nil {
			if out.Exception = x.Exception.Description; out.Exception == "" {
				out.Exception = x.Text + " " + x.Exception.text()
			}
		}
		out.Exception = clean(out.Exception, maxText)
	}
	return out, nil
}

// text is a result in one line.
func (o *remoteObject) text() string {
	switch {
	case o.UnserializableValue != "":
		return o.UnserializableValue
	case o.Preview != nil:
		return o.preview()
	case o.Type == "string" && len(o.Value) > 0:
		return string(o.Value)
	case o.Description != "":
		return o.Description
	case len(o.Value) > 0:
		return string(o.Value)
	}
	return o.Type
}

// preview shows the first properties of an object.
func (o *remoteObject) preview() string {
	list := o.Subtype == "array" || o.Subtype == "typedarray"
	left, right := "{", "}"
	if list {
		left, right = "[", "]"
	}
	var parts []string
	for _, p := range o.Preview.Properties {
		v := p.Value
		if p.Type == "string" {
			v = strconv.Quote(v)
		}
		if list {
			if _, err := strconv.Atoi(p.Name); err == nil {
				parts = append(parts, v)
				continue
			}
		}
		parts = append(parts, p.Name+": "+v)
	}
	if o.Preview.Overflow {
		parts = append(parts, "…")
	}
	if len(parts) == 0 {
		return o.Description
	}
	return o.Description + " " + left + strings.Join(parts, ", ") + right
}
