package proxy

import (
	"container/list"
	"net/http"
	"sync"
	"time"

	memory "github.com/seed1158cd35/weir/internal/buffers"
)

// hurriedWrite is the deadline of a write while too many HTTP/2 responses are unread.
const hurriedWrite = 2 * time.Second

// windows tracks the HTTP/2 responses whose callers are not reading at the moment. A connection to an upstream holds up
// to memory.Window bytes of each. While they could hold more than their part of the memory, callers have hurriedWrite
// instead of the idle time. A caller that exceeds it loses its response.
type windows struct {
	most int

	mu   sync.Mutex
	n    int
	calm list.List // of *window with the idle time, oldest first
}

// A window is a write in progress.
type window struct {
	control *http.ResponseController
	at      *list.Element // in calm; nil if its deadline was shortened
}

// unread holds the windows of this process.
var unread = windows{most: max(16, int(memory.Unread()/int64(memory.Window())))}

// begin counts a write that is about to begin with its deadline set. If there are too many, it shortens the deadlines
// of this write and of the oldest other one. The returned function ends the write.
func (w *windows) begin(x *window) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	if w.n <= w.most {
		x.at = w.calm.PushBack(x)
		return func() { w.end(x) }
	}
	hurried := time.Now().Add(hurriedWrite)
	_ = x.control.SetWriteDeadline(hurried)
	if first := w.calm.Front(); first != nil {
		oldest := w.calm.Remove(first).(*window)
		oldest.at = nil
		_ = oldest.control.SetWriteDeadline(hurried)
	}
	return func() { w.end(x) }
}

func (w *windows) end(x *window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	if x.at != nil {
		w.calm.Remove(x.at)
		x.at = nil
	}
}
