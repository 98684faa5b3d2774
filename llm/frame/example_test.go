package frame_test

import (
	"fmt"

	"github.com/seed1158cd35/weir/llm/frame"
)

func ExampleSSE() {
	var s frame.SSE
	for _, chunk := range []string{"event: ping\ndata: {}\n\nda", "ta: {\"text\":\"hel", "lo\"}\n\ndata: cut"} {
		s.Feed([]byte(chunk))
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			e := frame.ParseEvent(f.Raw, nil)
			fmt.Printf("%q %s\n", e.Name, e.Data)
		}
	}
	fmt.Printf("rest: %q\n", s.Rest())
	// Output:
	// "ping" {}
	// "" {"text":"hello"}
	// rest: "data: cut"
}
