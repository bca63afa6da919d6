// Package producer is what an application imports to become a source.
package producer

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
	"github.com/natscope/natscope/subjects/source"
)

type Options struct {
	Service, Instance string
	Name              string
	ID                subjects.SourceID
	Kind              source.Kind
	Space             subjects.Space
	URL               string
	NATS              []nats.Option
	Conn              *nats.Conn
	Limits            subjects.Limits
	Logger            *slog.Logger
	Describe          func(*source.Descriptor)
}

type Producer struct{ o Options }

type PlaneStats struct {
	Published, Dropped, Resent uint64
	Queued, QueuedBytes        int
}

type Stats struct {
	Connected, Opened bool
	LastError         string
	Planes            map[subjects.Plane]PlaneStats
	Bodies            PlaneStats
}

func Start(o Options) (*Producer, error)            { return &Producer{o: o}, nil }
func (p *Producer) ID() subjects.SourceID           { return p.o.ID }
func (p *Producer) Generation() subjects.Generation { return "" }
func (p *Producer) Space() subjects.Space           { return p.o.Space }
func (p *Producer) Realm() source.RealmID           { return "" }
func (p *Producer) Limits() subjects.Limits         { return p.o.Limits.WithDefaults() }
func (p *Producer) Now() float64                    { return 0 }
func (p *Producer) Record(plane subjects.Plane, topic string, payload any) {
}
func (p *Producer) RecordAt(plane subjects.Plane, topic string, t float64, data json.RawMessage) {}
func (p *Producer) Publish(topic string, payload any) error                                      { return nil }
func (p *Producer) Update(u source.Update)                                                       {}
func (p *Producer) Lost(plane subjects.Plane, n uint64)                                          {}
func (p *Producer) OnSnapshot(f func() []subjects.Record)                                        {}
func (p *Producer) Resnapshot()                                                                  {}
func (p *Producer) Stats() Stats                                                                 { return Stats{} }
func (p *Producer) Flush(ctx context.Context) error                                              { return nil }
func (p *Producer) Close(ctx context.Context) error                                              { return nil }

type Body struct{}

func (p *Producer) Body(id network.RequestID, d subjects.Direction) *Body { return &Body{} }
func (b *Body) Write(chunk []byte)                                        {}
func (b *Body) End(reason string, total int64)                            {}
func (b *Body) Captured() int64                                           { return 0 }
func (b *Body) Truncated() bool                                           { return false }
