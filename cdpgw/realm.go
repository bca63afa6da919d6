package cdpgw

import (
	"context"

	"github.com/natscope/natscope/subjects/realm"
)

// realmMethods are natscope's own: what a component can be asked for that
// DevTools has no command for. Scripts and other clients of the protocol use them.
var realmMethods = map[string]method{
	"Natscope.logNode":      on((*session).realmLogNode),
	"Natscope.storeGlobal":  on((*session).realmStoreGlobal),
	"Natscope.openInEditor": on((*session).realmOpenInEditor),
}

// realmParams name a component, and a value of it where one is meant.
type realmParams struct {
	nodeParams
	Symbol string `json:"symbol"`
}

// commanded finds the component that a command is about, and the realm that takes it.
func (s *session) commanded(p nodeParams, m realm.Method) (node, realmOf, error) {
	n, err := s.lookup(p)
	switch {
	case err != nil:
		return node{}, realmOf{}, err
	case n.place != placeTree:
		return node{}, realmOf{}, failf("This node is no component of a program.")
	case n.source.Tree.Detached:
		return node{}, realmOf{}, failf("%s is not connected; what is shown is its last state.", n.source.Name())
	}
	at, err := s.reachable(n.source, m)
	return n, at, err
}

// asking is a slow command that passes on what the source answers.
func (s *session) asking(at realmOf, m realm.Method, params any) any {
	return later(func(ctx context.Context) (any, error) {
		result, err := s.command(ctx, at, m, params)
		if err != nil || len(result) == 0 {
			return nil, err
		}
		return result, nil
	})
}

// realmLogNode logs a component to the program's own console.
func (s *session) realmLogNode(p realmParams) (any, error) {
	n, at, err := s.commanded(p.nodeParams, realm.MethodLog)
	if err != nil {
		return nil, err
	}
	return s.asking(at, realm.MethodLog, realm.LogParams{ID: n.entry.ID}), nil
}

// realmStoreGlobal keeps a value of a component under a global name, which is the answer.
func (s *session) realmStoreGlobal(p realmParams) (any, error) {
	n, at, err := s.commanded(p.nodeParams, realm.MethodStoreGlobal)
	if err != nil {
		return nil, err
	}
	return s.asking(at, realm.MethodStoreGlobal, realm.StoreGlobalParams{ID: n.entry.ID, Symbol: p.Symbol}), nil
}

// realmOpenInEditor opens the place where a component is defined.
func (s *session) realmOpenInEditor(p realmParams) (any, error) {
	n, at, err := s.commanded(p.nodeParams, realm.MethodOpen)
	if err != nil {
		return nil, err
	}
	if n.entry.Loc == "" {
		return nil, failf("The program does not say where <%s> is defined.", elementName(n.entry.Name))
	}
	return s.asking(at, realm.MethodOpen, realm.OpenParams{Loc: n.entry.Loc}), nil
}
