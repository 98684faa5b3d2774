package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/sidecar/serve"
)

// patience bounds every wait.
const patience = time.Minute

// A Weir serves in this process, with an upstream whose responses the test sets.
type Weir struct {
	*serve.Running
	status atomic.Int64
	up     *httptest.Server

	mu  sync.Mutex
	log []byte
	id  string // of the latest call
}

// Write receives lines of the log.
func (w *Weir) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, b...)
	return len(b), nil
}

// Log returns the log so far.
func (w *Weir) Log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.log)
}

// Answers sets the status of the upstream's responses.
func (w *Weir) Answers(status int) { w.status.Store(int64(status)) }

// Serve serves a configuration in which the upstream's URL replaces URL%s.
func Serve(dir, yaml string, env func(string) (string, bool)) (*Weir, error) {
	w := new(Weir)
	w.Answers(http.StatusOK)
	w.up = httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) { to.WriteHeader(int(w.status.Load())) }))
	file := filepath.Join(dir, "weir.yaml")
	err := os.WriteFile(file, []byte(fmt.Sprintf(yaml, w.up.URL)), 0o600)
	if err == nil {
		w.Running, err = serve.Start(file, serve.Options{Log: w, Env: env})
	}
	if err != nil {
		w.up.Close()
		return nil, err
	}
	return w, nil
}

// End stops weir and the upstream.
func (w *Weir) End() error {
	defer w.up.Close()
	return w.Close()
}

// Call makes a call.
func (w *Weir) Call(path string) (int, error) {
	resp, err := http.Post("http://"+w.Addr()+path, "text/plain", nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.id = resp.Header.Get("X-Correlation-Id")
	return resp.StatusCode, nil
}

// LastID returns the ID of the latest call.
func (w *Weir) LastID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.id
}
