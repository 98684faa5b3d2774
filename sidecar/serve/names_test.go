//go:build unix

package serve

import (
	"context"
	"net"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// A zone is a DNS server whose addresses a test changes. Responses must not be cached. A name without an address does
// not exist. While the zone is broken, requests fail.
type zone struct {
	conn  net.PacketConn
	mu    sync.Mutex
	names map[string][]string
	fails bool
	asked int
}

// names is the zone of this package's tests.
var names = &zone{names: make(map[string][]string)}

// serveNames makes this process's resolver use the zone.
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
