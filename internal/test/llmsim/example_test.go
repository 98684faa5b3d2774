package llmsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

func post(url string) *http.Response {
	r, err := http.NewRequest(http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer a key")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		panic(err)
	}
	_ = res.Body.Close()
	return res
}

func Example() {
	p := llmsim.New(llmsim.Config{Default: llmsim.Model{Limits: llmsim.Limits{
		Requests: llmsim.Rate{N: 2, Per: time.Hour},
	}}})
	s, err := p.Start()
	if err != nil {
		panic(err)
	}
	defer s.Close()
	for range 3 {
		fmt.Println(post(s.URL).Status)
	}
	fmt.Println(p.Refused(), "refused:", p.Log()[2].Reason)
	fmt.Println(p.Busiest(time.Minute, nil).Requests, "in the busiest minute")
	// Output:
	// 200 OK
	// 200 OK
	// 429 Too Many Requests
	// 1 refused: requests per hour
	// 2 in the busiest minute
}

func ExampleProvider_Fault() {
	p := llmsim.New(llmsim.Config{})
	s, err := p.Start()
	if err != nil {
		panic(err)
	}
	defer s.Close()
	p.Fault(llmsim.Fault{Kind: llmsim.Throttle, Times: 2, Hint: 1500 * time.Millisecond})
	for range 3 {
		res := post(s.URL)
		fmt.Println(res.StatusCode, res.Header.Get("Retry-After-Ms"))
	}
	// Output:
	// 429 1500
	// 429 1500
	// 200
}
