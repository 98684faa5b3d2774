package decide_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/decide"
)

// A program asks before each call, and then reports the result.
func Example() {
	api, err := weir.New("api", weir.Policy{Limits: []limit.Limit{
		{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}},
	}}, weir.Options{})
	if err != nil {
		log.Fatal(err)
	}
	s := &decide.Server{Upstreams: func() map[string]*weir.Upstream { return map[string]*weir.Upstream{"api": api} }}
	defer s.Close()
	l := httptest.NewServer(s.Handler())
	defer l.Close()

	first := post(l.URL+"/v1/acquire", `{"upstream":"api","cost":{"tokens":80}}`)
	fmt.Println("left:", first.Limits[0].Left)
	fmt.Println("refused:", post(l.URL+"/v1/acquire", `{"upstream":"api","cost":{"tokens":80}}`).Error.Code)

	post(l.URL+"/v1/report", `{"permit":"`+first.Permit+`","status":200,"usage":{"tokens":15}}`)
	fmt.Println("left:", post(l.URL+"/v1/acquire", `{"upstream":"api","cost":{"tokens":80}}`).Limits[0].Left)
	// Output:
	// left: 20
	// refused: RATE_LIMIT_EXCEEDED
	// left: 5
}

type reply struct {
	Permit string
	Limits []struct{ Left int }
	Error  struct{ Code string }
}

func post(url, body string) (r reply) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		log.Fatal(err)
	}
	return r
}
