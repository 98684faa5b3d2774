//go:build !race

package wstest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// thrifty starts an echo server that allocates nothing per message.
func thrifty(b testing.TB) (url string) {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for e := (end{c: c}); e.pass() == nil; {
		}
	}))
	b.Cleanup(s.Close)
	return s.URL
}

// An end of a connection has a separate buffer.
type end struct {
	c   *ws.Conn
	buf [4096]byte
	n   int
	typ ws.MessageType
}

func (e *end) read() error {
	typ, r, err := e.c.Reader(context.Background())
	e.typ, e.n = typ, 0
	for err == nil {
		var n int
		n, err = r.Read(e.buf[e.n:])
		e.n += n
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func (e *end) pass() error {
	if err := e.read(); err != nil {
		return err
	}
	return e.c.Write(context.Background(), e.typ, e.buf[:e.n])
}

// copier starts a minimal proxy of connections.
func copier(b testing.TB, url string) (address string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				near.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					buf := make([]byte, 4096) // io.Copy would use splice, which a proxy of messages cannot
					for {
						n, err := pair[0].Read(buf)
						if err != nil {
							pair[0].Close()
							pair[1].Close()
							return
						}
						_, _ = pair[1].Write(buf[:n])
					}
				}()
			}
		}
	}()
	return l.Addr().String()
}

// ways returns the ways from the client to the echo. Through weir, each message is limited by route, user and connection.
func ways(b testing.TB) map[string]func() string {
	b.Helper()
	return map[string]func() string{
		"direct": func() string { return strings.TrimPrefix(thrifty(b), "http://") + "/chat/" },
		"copy":   func() string { return copier(b, thrifty(b)) + "/chat/" },
		"weir": func() string {
			w := served.Begin(b, file(thrifty(b), "    keys: {user: \"header:X-User\"}\n    limits: {few: {rate: 1000000000/s, operations: send, scope: user}, each: {rate: 1000000000/s, scope: connection}}\n"))
			return w.Serve.Listen + "/chat/"
		},
	}
}

func open(b testing.TB, address string) *ws.Conn {
	b.Helper()
	c, _, err := ws.Dial(context.Background(), "ws://"+address, &ws.DialOptions{HTTPHeader: http.Header{"X-User": {"a"}}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.CloseNow() })
	return c
}

var said = []byte(`{"action":"send","to":"room-17","text":"` + strings.Repeat("x", 160) + `"}`)

// An echo is two messages of 200 B. The ways alternate every few milliseconds, so that other load affects all. The results are
// medians of time and CPU, including client and server.
func BenchmarkBeside(b *testing.B) {
	for _, many := range []int{1, 32} {
		b.Run(strconv.Itoa(many), func(b *testing.B) {
			names, ends := []string{"direct", "copy", "weir"}, map[string][]*end{}
			for name, way := range ways(b) {
				address := way()
				for range many {
					ends[name] = append(ends[name], &end{c: open(b, address)})
				}
				echoes(b, ends[name], 1000)
			}
			const batch = 200
			wall, cpu := map[string][]float64{}, map[string][]float64{}
			for b.Loop() {
				for _, name := range names {
					begin, used := time.Now(), processor()
					echoes(b, ends[name], batch)
					wall[name] = append(wall[name], float64(time.Since(begin))/batch)
					cpu[name] = append(cpu[name], float64(processor()-used)/batch)
				}
			}
			for _, name := range names {
				b.ReportMetric(median(wall[name]), name+"-ns/echo")
				b.ReportMetric(median(cpu[name]), name+"-cpu-ns/echo")
			}
			b.ReportMetric((median(wall["weir"])-median(wall["direct"]))/2, "over-ns/message")
			b.ReportMetric((median(cpu["weir"])-median(cpu["direct"]))/2, "over-cpu-ns/message")
		})
	}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// processor returns the CPU time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func echoes(b testing.TB, ends []*end, n int) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for _, e := range ends {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if e.c.Write(context.Background(), ws.MessageText, said) != nil || e.read() != nil || e.n != len(said) {
					b.Error("no echo")
					return
				}
			}
		})
	}
	wg.Wait()
}

// The memory of an idle connection, including client and server.
func BenchmarkIdle(b *testing.B) {
	for _, name := range []string{"direct", "copy", "weir"} {
		b.Run(name, func(b *testing.B) {
			address := ways(b)[name]()
			for range 10 {
				open(b, address)
			}
			const n = 500
			before := held()
			for range n {
				open(b, address)
			}
			after := held()
			for b.Loop() {
			}
			b.ReportMetric(float64(after-before)/n/1024, "KiB/conn")
		})
	}
}

func held() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// A forwarded message causes no allocation in weir. (With the race detector, pools drop some items.)
func TestMessagesAllocateNothing(t *testing.T) {
	per := map[string]float64{}
	for _, name := range []string{"direct", "weir"} {
		e := []*end{{c: open(t, ways(t)[name]())}}
		echoes(t, e, 1000)
		per[name] = testing.AllocsPerRun(20, func() { echoes(t, e, 500) }) / 500
	}
	if more := per["weir"] - per["direct"]; more > 0.05 { // a timer of the runtime sometimes allocates
		t.Errorf("%v allocations an echo, direct %v", per["weir"], per["direct"])
	}
}
