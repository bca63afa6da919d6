package fold

import (
	"github.com/natscope/natscope/subjects/source"
	"github.com/natscope/natscope/subjects/tree"
)

// CordisTree returns the trees of the Cordis runtimes among some sources, as a
// value of its own: the answer of getCordisTree.
func CordisTree(sources ...*Source) tree.CordisTree {
	in := make([]tree.CordisInput, 0, len(sources))
	for _, s := range sources {
		kind := s.Life.Descriptor.Kind
		if kind != source.KindClient {
			kind = source.KindHost
		}
		in = append(in, tree.CordisInput{
			Source:    tree.CordisSource{ID: string(s.ID), Kind: string(kind), Label: s.Name()},
			Connected: s.Connected, Reason: s.Life.Reason, Tree: &s.Tree,
		})
	}
	return tree.Cordis(in...)
}
