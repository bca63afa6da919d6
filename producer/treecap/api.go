// Package treecap shows a live tree of an application's parts.
package treecap

import "github.com/natscope/natscope/producer"

type Options struct{ RootName string }
type Tree struct{}
type Node struct{}
type Option func(*Node)

func New(p *producer.Producer, o Options) *Tree          { return &Tree{} }
func (t *Tree) Root() *Node                              { return &Node{} }
func (t *Tree) Flush()                                   {}
func (t *Tree) Close()                                   {}
func (n *Node) Add(name string, options ...Option) *Node { return &Node{} }
func (n *Node) Set(attr string, value any)               {}
func (n *Node) SetText(text string)                      {}
func (n *Node) Remove()                                  {}
func Kind(kind string) Option                            { return func(*Node) {} }
func Attr(name string, value any) Option                 { return func(*Node) {} }
func Text(text string) Option                            { return func(*Node) {} }
