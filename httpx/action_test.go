package httpx_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/retry"
)

// A GET with an Action that changes something is repeated only after it was throttled, as a POST is.
func TestGetWithActionIsRepeatedLikePost(t *testing.T) {
	for query, safe := range map[string]bool{
		"Action=SendMessage&MessageBody=a": false, "Action=Publish": false, "Version=1&Action=RunInstances": false, "%41ction=Run%49nstances": false,
		"Action=TestInvokeMethod": false, "Action=": false, "Action=ListTopics&Action=DeleteTopic": false,
		"Action=DescribeInstances": true, "Action=ListTopics": true, "Action=GetUser": true, "Action=HeadThing": true, "Action=LookupEvents": true,
		"action=query": true, "Reaction=Publish": true, "q=Action": true, "": true,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for fault, repeated := range map[string]bool{"500": safe, "cut": safe, "cut on a used connection": safe, "429": true} {
				var n atomic.Int64
				far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/warm" || n.Add(1) > 1 {
						return
					}
					switch fault {
					case "500":
						w.WriteHeader(http.StatusInternalServerError)
					case "429":
						w.WriteHeader(http.StatusTooManyRequests)
					default:
						panic(http.ErrAbortHandler)
					}
				}))
				base := &http.Transport{}
				u, err := weir.New("a", weir.Policy{Retry: retry.Config{Attempts: 2, Base: 1, Cap: 1}}, weir.Options{})
				if err != nil {
					t.Fatal(err)
				}
				client := &http.Client{Transport: httpx.NewTransport(u, base)}
				if fault == "cut on a used connection" {
					if resp, err := client.Get(far.URL + "/warm"); err == nil {
						resp.Body.Close()
					}
				}
				req, _ := http.NewRequest(method, far.URL+"/?"+query, nil)
				if resp, err := client.Do(req); err == nil {
					resp.Body.Close()
				}
				if got := n.Load() > 1; got != repeated {
					t.Errorf("%s ?%s after %s: repeated %v, want %v", method, query, fault, got, repeated)
				}
				base.CloseIdleConnections()
				far.Close()
			}
		}
	}
}
