package xray

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/internal/test/sigtest"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
	"github.com/seed1158cd35/weir/observe/trace"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

// Requests are signed for X-Ray, including all header fields and the body.
func TestRequestsAreSigned(t *testing.T) {
	v := sigtest.Verifier{Secrets: map[string]string{"AKID": "SECRET"}}
	var got sigtest.Signed
	var wrong error
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got, wrong = v.Verify(r) }))
	defer s.Close()
	e, err := New(Config{AWS: aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "TOKEN")}, URL: s.URL + "/v1/traces"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Export(t.Context(), []trace.Span{{Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	if wrong != nil || got.Service != "xray" || got.Region != "eu-west-1" || got.Token != "TOKEN" || len(got.Body) == 0 {
		t.Errorf("got %v, %v; want a request that is signed for xray", got, wrong)
	}
}

// Missing credentials may be available later.
func TestWithoutCredentialsItIsTriedAgain(t *testing.T) {
	e, err := New(Config{AWS: aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("", "", "")}})
	if err != nil {
		t.Fatal(err)
	}
	err = e.Export(t.Context(), []trace.Span{{Name: "x"}})
	if _, again := errors.AsType[*trace.LaterError](err); !again {
		t.Errorf("got %v, want one to be tried again", err)
	}
}
