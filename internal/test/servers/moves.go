package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// MoveTasks is a proxy of fauxqs that adds the missing tasks to move messages out of a dead letter queue. It follows AWS's
// documentation: one task at a time per source, the latest first, and a handle while they run.
type MoveTasks struct {
	*httptest.Server
	behind string
	client http.Client

	mu    sync.Mutex
	tasks []*moveTask // the latest is last
	all   sync.WaitGroup
}

type moveTask struct {
	TaskHandle                        string `json:",omitempty"`
	Status                            string
	SourceArn                         string
	DestinationArn                    string `json:",omitempty"`
	MaxNumberOfMessagesPerSecond      int    `json:",omitempty"`
	ApproximateNumberOfMessagesMoved  int64
	ApproximateNumberOfMessagesToMove int64
	StartedTimestamp                  int64

	handle string
}

// NewMoveTasks returns a proxy of a server.
func NewMoveTasks(t TB, behind *Server) *MoveTasks {
	t.Helper()
	at, err := url.Parse(behind.Endpoint())
	if err != nil {
		t.Fatalf("%v", err)
	}
	m := &MoveTasks{behind: behind.Endpoint()}
	pass := httputil.NewSingleHostReverseProxy(at)
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, what, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if !strings.Contains(what, "MessageMoveTask") {
			pass.ServeHTTP(w, r)
			return
		}
		var in moveTask
		_ = json.NewDecoder(r.Body).Decode(&in)
		out, wrong := m.answer(what, &in)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if wrong != "" {
			w.WriteHeader(http.StatusBadRequest)
			out = map[string]string{"__type": "com.amazonaws.sqs#" + wrong, "message": wrong + " in " + what}
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(func() {
		m.Close()
		m.mu.Lock()
		for _, task := range m.tasks {
			task.Status = "CANCELLED"
		}
		m.mu.Unlock()
		m.all.Wait()
	})
	return m
}

// answer performs an action, or returns an error.
func (m *MoveTasks) answer(what string, in *moveTask) (out any, wrong string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var latest *moveTask
	for _, task := range m.tasks {
		if task.SourceArn == in.SourceArn || in.TaskHandle != "" && task.handle == in.TaskHandle {
			latest = task
		}
	}
	runs := latest != nil && latest.Status == "RUNNING"
	switch what {
	case "StartMessageMoveTask":
		if runs {
			return nil, "UnsupportedOperation"
		}
		if in.DestinationArn == "" { // messages that were sent directly to the dead letter queue need a destination
			return nil, "InvalidParameterValue"
		}
		in.handle, in.Status, in.StartedTimestamp = fmt.Sprint("task-", len(m.tasks)), "RUNNING", time.Now().UnixMilli()
		var of struct{ Attributes map[string]string }
		m.ask("GetQueueAttributes", map[string]any{"QueueUrl": m.urlOf(in.SourceArn), "AttributeNames": []string{"All"}}, &of)
		_, _ = fmt.Sscan(of.Attributes["ApproximateNumberOfMessages"], &in.ApproximateNumberOfMessagesToMove)
		m.tasks = append(m.tasks, in)
		m.all.Go(func() { m.move(in) })
		return map[string]string{"TaskHandle": in.handle}, ""
	case "CancelMessageMoveTask":
		if !runs {
			return nil, "ResourceNotFoundException"
		}
		latest.Status = "CANCELLED"
		return map[string]int64{"ApproximateNumberOfMessagesMoved": latest.ApproximateNumberOfMessagesMoved}, ""
	}
	results := []moveTask{}
	if latest != nil {
		shown := *latest
		if runs {
			shown.TaskHandle = latest.handle
		}
		results = append(results, shown)
	}
	return map[string]any{"Results": results}, ""
}

// move moves messages, one after the other.
func (m *MoveTasks) move(task *moveTask) {
	for {
		var got struct {
			Messages []struct{ Body, ReceiptHandle string }
		}
		m.ask("ReceiveMessage", map[string]any{"QueueUrl": m.urlOf(task.SourceArn), "MaxNumberOfMessages": 1}, &got)
		m.mu.Lock()
		if len(got.Messages) == 0 && task.Status == "RUNNING" {
			task.Status = "COMPLETED"
		}
		runs, rate := task.Status == "RUNNING", task.MaxNumberOfMessagesPerSecond
		m.mu.Unlock()
		if !runs {
			return
		}
		m.ask("SendMessage", map[string]any{"QueueUrl": m.urlOf(task.DestinationArn), "MessageBody": got.Messages[0].Body}, nil)
		m.ask("DeleteMessage", map[string]any{"QueueUrl": m.urlOf(task.SourceArn), "ReceiptHandle": got.Messages[0].ReceiptHandle}, nil)
		m.mu.Lock()
		task.ApproximateNumberOfMessagesMoved++
		m.mu.Unlock()
		if rate > 0 {
			time.Sleep(time.Second / time.Duration(rate))
		}
	}
}

func (m *MoveTasks) urlOf(arn string) string {
	parts := strings.Split(arn, ":")
	return m.behind + "/" + parts[len(parts)-2] + "/" + parts[len(parts)-1]
}

func (m *MoveTasks) ask(what string, in, out any) {
	body, _ := json.Marshal(in)
	r, err := http.NewRequest(http.MethodPost, m.behind, bytes.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("X-Amz-Target", "AmazonSQS."+what)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := m.client.Do(r)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if out != nil {
		_ = json.Unmarshal(text, out)
	}
}
