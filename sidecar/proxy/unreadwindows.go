package proxy

import (
	"container/list"
	"net/http"
	"sync"
	"time"

	memory "github.com/seed1158cd35/weir/internal/buffers"
)

// hurriedWrite is how long a write may take while too many responses over HTTP/2 are not read.
const hurriedWrite = 2 * time.Second

// windows are the responses over HTTP/2 whose callers do not read at the moment. A connection to an upstream holds up to
// memory.Window bytes of each. While they could hold more than their part of the memory, callers have hurriedWrite instead
// of the idle time, and then lose the response.
type windows struct {
	most int

	mu   sync.Mutex
	n    int
	calm list.List // of *window that have the idle time, the oldest first
}

// A window is a write that is under way.
type window struct {
	control *http.ResponseController
	at      *list.Element // in calm; nil if it was hurried
}

// unread are the windows of this process.
var unread = windows{most: max(16, int(memory.Unread()/int64(memory.Window())))}

// begin counts a write that is about to begin and has its deadline. If there are too many, it is hurried, and the oldest of
// the others. The function counts that it has ended.
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
