package httpx_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// Unread responses over HTTP/2 occupy at most 1 MiB of memory each, and do not block each other.
func TestUnreadAnswerOverHTTP2HoldsLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var sent atomic.Int64
		s := &httptest.Server{Listener: n.Listen("api.test"), EnableHTTP2: true, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for piece := make([]byte, 4<<10); r.URL.Path == "/large"; {
				k, err := w.Write(piece)
				if sent.Add(int64(k)); err != nil {
					return
				}
			}
		})}}
		s.StartTLS()
		defer s.Close()
		base := httpx.NewBase(weir.Timeouts{}, 0)
		base.DialContext, base.TLSClientConfig = n.Dial, &tls.Config{InsecureSkipVerify: true}
		defer base.CloseIdleConnections()
		client := &http.Client{Transport: base}
		const readers = 20
		for range readers {
			resp, err := client.Get("https://api.test/large")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
		}
		synctest.Wait()
		if each := sent.Load() / readers; each > 1<<20+16<<10 || each < 64<<10 {
			t.Errorf("%d bytes of each are held, want 64 KiB to 1 MiB", each)
		}
		begin := time.Now()
		resp, err := client.Get("https://api.test/small")
		if err != nil || resp.ProtoMajor != 2 || time.Since(begin) > 0 {
			t.Errorf("another call: %v, %v after %v", resp, err, time.Since(begin))
		}
	})
}
