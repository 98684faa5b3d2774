package llmsim

import (
	"net/http/httptest"
	"testing"

	"github.com/seed1158cd35/weir/llm"
)

// The cost of the simulator itself, without a connection.
func BenchmarkAnswer(b *testing.B) {
	for name, stream := range map[string]bool{"plain": false, "stream": true} {
		b.Run(name, func(b *testing.B) {
			p := New(Config{Default: Model{Limits: Limits{Requests: Rate{N: 1 << 40}, Tokens: Rate{N: 1 << 40}}}})
			a := asks(llm.OpenAI, stream)
			for b.Loop() {
				p.ServeHTTP(httptest.NewRecorder(), a.request(b.Context(), "http://sim"))
			}
		})
	}
}
