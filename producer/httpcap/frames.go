package httpcap

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
)

// The opcodes of WebSocket frames.
const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPong         = 10
)

const (
	// maxCompressed is the size of the largest compressed message that is decompressed, in bytes.
	maxCompressed = 1 << 20
	// maxInflated is what a compressed message decompresses to at most, in bytes: it
	// happens while the application waits.
	maxInflated = 1 << 20
	// window is how far back a compressed message may refer to those before it.
	window = 32 << 10
)

// wsMessage is one message of a WebSocket, or one control frame.
type wsMessage struct {
	op int
	// data is the payload, or its beginning; size is that of all of it.
	data []byte
	size int64
	// unread says that a compressed payload could not be read: data is empty.
	unread bool
}

// frameParser reads one direction of a WebSocket connection from its wire,
// however the bytes are cut. It keeps the beginning of one message, one header,
// and, where messages are compressed, what the next one may refer to. What is no
// WebSocket ends its reading for good.
type frameParser struct {
	emit func(wsMessage)

	// began says that the handshake is over; tail are the last bytes of a handshake.
	began, handshake bool
	tail             []byte
	// broken says that the bytes are no frames.
	broken bool

	head []byte
	// left is what is missing of the payload of the present frame; in says that there is one.
	left   int64
	in     bool
	fin    bool
	op     int
	masked bool
	mask   [4]byte
	pos    int

	control []byte
	message wsMessage
	open    bool
	// compressed says that the message is; keep is how much of it is kept.
	compressed bool
	keep       int
	history    []byte
	// lostHistory says that later compressed messages cannot be read.
	lostHistory bool
}

// write takes the next bytes of the wire.
func (p *frameParser) write(b []byte) {
	for len(b) > 0 && !p.broken {
		switch {
		case !p.began:
			b = p.skipHandshake(b)
		case !p.in:
			b = p.header(b)
		default:
			b = p.payload(b)
		}
	}
}

// skipHandshake skips HTTP messages without a body before the first frame, those
// of a proxy too. No frame begins with the letters that they begin with.
func (p *frameParser) skipHandshake(b []byte) []byte {
	if !p.handshake {
		if b[0] != 'H' && b[0] != 'G' && b[0] != 'C' {
			p.began = true
			return b
		}
		p.handshake = true
	}
	const end = "\r\n\r\n"
	for i, c := range b {
		if p.tail = append(p.tail, c); len(p.tail) > len(end) {
			p.tail = append(p.tail[:0], p.tail[1:]...)
		}
		if string(p.tail) == end {
			p.tail, p.handshake = p.tail[:0], false
			return b[i+1:]
		}
	}
	return nil
}

// header takes bytes of a frame's header, 2 to 14 of them.
func (p *frameParser) header(b []byte) []byte {
	for len(b) > 0 {
		p.head = append(p.head, b[0])
		b = b[1:]
		if len(p.head) < 2 {
			continue
		}
		need, length := 2, int64(p.head[1]&0x7f)
		switch length {
		case 126:
			need += 2
		case 127:
			need += 8
		}
		if p.masked = p.head[1]&0x80 != 0; p.masked {
			need += 4
		}
		if len(p.head) < need {
			continue
		}
		switch length {
		case 126:
			length = int64(binary.BigEndian.Uint16(p.head[2:]))
		case 127:
			length = int64(binary.BigEndian.Uint64(p.head[2:]))
		}
		if p.masked {
			copy(p.mask[:], p.head[need-4:need])
		}
		p.begin(p.head[0], length)
		p.head = p.head[:0]
		return b
	}
	return nil
}

// begin starts the payload of a frame.
func (p *frameParser) begin(first byte, length int64) {
	p.fin, p.op = first&0x80 != 0, int(first&0x0f)
	p.in, p.left, p.pos = true, length, 0
	isControl := p.op >= opClose
	switch {
	case length < 0, first&0x30 != 0, p.op > opPong, p.op > opBinary && p.op < opClose,
		isControl && (length > 125 || !p.fin), p.op == opContinuation && !p.open, !isControl && p.op != opContinuation && p.open:
		p.broken = true
		return
	case isControl:
		p.control = p.control[:0]
	case p.op != opContinuation:
		p.open, p.message = true, wsMessage{op: p.op}
		if p.compressed, p.keep = first&0x40 != 0, maxMessage; p.compressed {
			p.keep = maxCompressed
		}
	}
	if length == 0 {
		p.endFrame()
	}
}

// payload takes bytes of the payload of a frame.
func (p *frameParser) payload(b []byte) []byte {
	n := int(min(int64(len(b)), p.left))
	into, room := &p.control, 125-len(p.control)
	if p.op < opClose {
		into, room = &p.message.data, p.keep-len(p.message.data)
		p.message.size += int64(n)
	}
	start := len(*into)
	*into = append(*into, b[:min(n, max(room, 0))]...)
	if p.masked {
		for i := range (*into)[start:] {
			(*into)[start+i] ^= p.mask[(p.pos+i)&3]
		}
	}
	p.pos, p.left = p.pos+n, p.left-int64(n)
	if p.left == 0 {
		p.endFrame()
	}
	return b[n:]
}

func (p *frameParser) endFrame() {
	p.in = false
	switch {
	case p.op >= opClose:
		p.emit(wsMessage{op: p.op, data: p.control, size: int64(len(p.control))})
	case p.fin:
		p.open = false
		if p.compressed {
			p.inflate()
		}
		p.emit(p.message)
		p.message = wsMessage{}
	}
}

// inflate replaces a compressed message by what it says.
func (p *frameParser) inflate() {
	m := &p.message
	if p.lostHistory || int64(len(m.data)) < m.size {
		p.lostHistory, p.history = true, nil
		m.data, m.unread = nil, true
		return
	}
	// A message is cut off in front of an empty block; the second one here ends the stream.
	const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"
	r := flate.NewReaderDict(io.MultiReader(bytes.NewReader(m.data), bytes.NewReader([]byte(tail))), p.history)
	var out bytes.Buffer
	n, err := io.Copy(&out, io.LimitReader(r, maxInflated+1))
	if err != nil || n > maxInflated {
		p.lostHistory, p.history = true, nil
		m.data, m.unread = nil, true
		return
	}
	p.history = append(p.history, out.Bytes()[max(0, out.Len()-window):]...)
	if over := len(p.history) - window; over > 0 {
		p.history = append(p.history[:0], p.history[over:]...)
	}
	m.size, m.data = n, out.Bytes()[:min(n, maxMessage)]
}
