//go:build unix

package serve

import (
	"context"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// A zone answers for names with addresses that a test changes; what is answered may be kept for
// no time at all. Without an address a name is not known, and while it is broken the zone fails.
type zone struct {
	conn  net.PacketConn
	mu    sync.Mutex
	names map[string][]string
	fails bool
	asked int
}

// names are those of the tests of this package.
var names = &zone{names: make(map[string][]string)}

// serveNames has the resolver of this process ask the zone.
func serveNames() error {
	var err error
	if names.conn, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		return err
	}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("udp", names.conn.LocalAddr().String())
	}}
	go names.serve()
	return nil
}

func (z *zone) serve() {
	b := make([]byte, 1500)
	for {
		n, from, err := z.conn.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil {
			continue
		}
		if out, err := z.answer(m); err == nil {
			_, _ = z.conn.WriteTo(out, from)
		}
	}
}

func (z *zone) answer(m dnsmessage.Message) ([]byte, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
	r := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true}, Questions: m.Questions}
	q := m.Questions[0]
	addresses, known := z.names[strings.TrimSuffix(q.Name.String(), ".")]
	switch {
	case z.fails:
		r.RCode = dnsmessage.RCodeServerFailure
	case !known:
		r.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		for _, a := range addresses {
			r.Answers = append(r.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
				Body:   &dnsmessage.AResource{A: [4]byte(net.ParseIP(a).To4())},
			})
		}
	}
	return r.Pack()
}

func (z *zone) set(name string, addresses ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.fails = false
	if z.names[name] = addresses; len(addresses) == 0 {
		delete(z.names, name)
	}
}

func (z *zone) fail() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.fails = true
}
