package xray

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/observe/trace"
)

// Daemon is where an X-Ray daemon listens, or what speaks as it does: CloudWatch's agent, the collector's receiver.
type Daemon struct {
	Address string // of UDP; "" means 127.0.0.1:2000
	Service string // the name of the segments; "" means weir
}

// A daemon sends segments, one in a datagram.
type daemon struct {
	conn    net.Conn
	service string
}

// NewDaemon makes an exporter. UDP brings no answer: what a daemon drops is counted as exported.
func NewDaemon(d Daemon) (trace.Exporter, error) {
	conn, err := net.Dial("udp", cmp.Or(d.Address, "127.0.0.1:2000"))
	if err != nil {
		return nil, fmt.Errorf("xray: %w", err)
	}
	return &daemon{conn: conn, service: cmp.Or(d.Service, "weir")}, nil
}

// Variable is that of the environment which says where the daemon is, over what a program says, as in AWS's own SDKs.
const Variable = "AWS_XRAY_DAEMON_ADDRESS"

// UDP is the address in a value of Variable: host:port, or tcp:host:port udp:host:port in any order.
func UDP(value string) (address string, err error) {
	for _, word := range strings.Fields(value) {
		kind, rest, _ := strings.Cut(word, ":")
		switch {
		case kind == "tcp": // for the sampling rules, which are asked of X-Ray itself
			continue
		case kind == "udp":
			word = rest
		}
		host, port, err := net.SplitHostPort(word)
		if n, _ := strconv.ParseUint(port, 10, 16); err != nil || host == "" || n == 0 || address != "" {
			return "", errNoAddress
		}
		address = word
	}
	if address == "" {
		return "", errNoAddress
	}
	return address, nil
}

var errNoAddress = errors.New(Variable + ": want host:port, or tcp:host:port udp:host:port")

// header is the line before each document.
const header = `{"format": "json", "version": 1}` + "\n"

// mostDocument is how long a document may be, for X-Ray and, with its header, for a datagram.
const mostDocument = 64_000

// Export sends the segments of spans.
func (d *daemon) Export(ctx context.Context, spans []trace.Span) error {
	var lost int64
	for request := range requests(spans) {
		if ctx.Err() != nil {
			return &trace.LaterError{Err: context.Cause(ctx)}
		}
		n := int64(len(request))
		switch err := d.send(document(request, d.service)); {
		case errors.Is(err, errTooLong):
			lost += n
		case err != nil: // nobody listens there, as an earlier datagram was told
			return &trace.LaterError{Err: errors.New("the daemon does not take datagrams")}
		}
	}
	if lost > 0 {
		return &trace.PartialError{Spans: lost, Err: errTooLong}
	}
	return nil
}

// Close is io.Closer's.
func (d *daemon) Close() error { return d.conn.Close() }

var errTooLong = errors.New("a segment is too long for a datagram")

// send sends a document. If it is too long, as much as there is room for stays in it of what is beneath, and the rest is sent
// by itself: as few datagrams as that, since a daemon that is slow to read loses some.
func (d *daemon) send(s *segment) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if len(text) <= mostDocument {
		_, err = d.conn.Write(append([]byte(header), text...))
		return err
	}
	if len(s.Subsegments) == 0 {
		return errTooLong
	}
	rest, err := s.shorten()
	if err != nil {
		return err
	}
	if err := d.send(s); err != nil {
		return err
	}
	for _, part := range rest {
		part.Type, part.TraceID, part.ParentID = "subsegment", s.TraceID, s.ID
		if err := d.send(part); err != nil {
			return err
		}
	}
	return nil
}

// shorten takes out of a segment what there is no room for in a document, if anything of it has.
func (s *segment) shorten() (rest []*segment, err error) {
	all := s.Subsegments
	s.Subsegments = nil
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	room := mostDocument - len(text) - len(`,"subsegments":[]`)
	for _, sub := range all {
		text, err := json.Marshal(sub)
		if err != nil {
			return nil, err
		}
		if room -= len(text) + 1; room < 0 {
			rest = append(rest, sub)
			room += len(text) + 1
			continue
		}
		s.Subsegments = append(s.Subsegments, sub)
	}
	return rest, nil
}
