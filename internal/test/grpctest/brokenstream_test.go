package grpctest

import (
	"bytes"
	"io"
	"net"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fields encodes header fields for a stream.
func fields(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSizeLimit(0)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return b.Bytes()
}

// playFrames serves HTTP/2 on each connection of l. It reads requests and answers each by end, which returns false to close the
// connection.
func playFrames(l net.Listener, end func(f *http2.Framer, stream uint32) bool) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
				return
			}
			f := http2.NewFramer(c, c)
			_ = f.WriteSettings()
			for {
				fr, err := f.ReadFrame()
				if err != nil {
					return
				}
				switch fr := fr.(type) {
				case *http2.SettingsFrame:
					if !fr.IsAck() {
						_ = f.WriteSettingsAck()
					}
				case *http2.PingFrame:
					if !fr.IsAck() {
						_ = f.WritePing(true, fr.Data)
					}
				case *http2.DataFrame:
					if fr.StreamEnded() && !end(f, fr.StreamID) {
						return
					}
				}
			}
		}()
	}
}

// TestBrokenStreamsAreReportedAtTheirEnd covers every way in which a started response may end.
func TestBrokenStreamsAreReportedAtTheirEnd(t *testing.T) {
	begin := func(f *http2.Framer, id uint32) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, BlockFragment: fields(":status", "200", "content-type", "application/grpc")})
		_ = f.WriteData(id, false, []byte{0, 0, 0, 0, 0})
	}
	trailers := func(f *http2.Framer, id uint32, pairs ...string) {
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true, BlockFragment: fields(pairs...)})
	}
	for _, tt := range []struct {
		name  string
		end   func(f *http2.Framer, id uint32) bool
		class string
		code  codes.Code // for the caller; OK means any error
	}{
		{"RST_STREAM", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			_ = f.WriteRSTStream(id, http2.ErrCodeInternal)
			return true
		}, "failed", codes.Internal},
		{"RST_STREAM of a refused stream", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			_ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			return true
		}, "failed", codes.Unavailable},
		{"RST_STREAM without an error", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			_ = f.WriteRSTStream(id, http2.ErrCodeNo)
			return true
		}, "failed", codes.OK},
		{"error in trailers", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			trailers(f, id, "grpc-status", "14", "grpc-message", "down")
			return true
		}, "failed", codes.Unavailable},
		{"throttle in trailers", func(f *http2.Framer, id uint32) bool { begin(f, id); trailers(f, id, "grpc-status", "8"); return true }, "throttled", codes.ResourceExhausted},
		{"unreadable status", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			trailers(f, id, "grpc-status", "many")
			return true
		}, "failed", codes.OK},
		{"trailers without a status", func(f *http2.Framer, id uint32) bool { begin(f, id); trailers(f, id, "x-a", "b"); return true }, "failed", codes.OK},
		{"no trailers", func(f *http2.Framer, id uint32) bool { begin(f, id); _ = f.WriteData(id, true, nil); return true }, "failed", codes.OK},
		{"GOAWAY", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			_ = f.WriteGoAway(id, http2.ErrCodeNo, nil)
			return false
		}, "failed", codes.Unavailable},
		{"GOAWAY that leaves the stream out", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			_ = f.WriteGoAway(0, http2.ErrCodeInternal, nil)
			return false
		}, "failed", codes.Unavailable},
		{"cut connection", func(f *http2.Framer, id uint32) bool { begin(f, id); return false }, "failed", codes.Unavailable},
		{"frame of no stream", func(f *http2.Framer, id uint32) bool {
			begin(f, id)
			_ = f.WriteData(id+100, false, []byte("x"))
			return false
		}, "failed", codes.OK},
		{"status in headers alone", func(f *http2.Framer, id uint32) bool {
			trailers(f, id, ":status", "200", "content-type", "application/grpc", "grpc-status", "13")
			return true
		}, "failed", codes.Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go playFrames(l, tt.end)
			w := before(t, l.Addr().String(), "retry: off")
			_, err = ask(within(t), dial(t, w.Serve.Listen), "x")
			if err == nil || tt.code != codes.OK && status.Code(err) != tt.code {
				t.Errorf("the caller got %v, want %v", err, tt.code)
			}
			shown(t, w, "/metrics", `weir_attempts_total{class="`+tt.class+`",operation="default",upstream="echo"} 1`)
		})
	}
}
