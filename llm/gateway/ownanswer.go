package gateway

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
)

// old is what the cache has, however old.
func (c *conduct) old(turn cascade.Turn) (*http.Response, error) {
	if c.x.key == nil || c.state == cache.Miss {
		return nil, cascade.ErrNothing
	}
	if c.near > 0 {
		turn.Confidence = c.less(turn.Confidence)
	}
	resp := c.replay(c.held, turn, true)
	if resp == nil {
		return nil, cascade.ErrNothing
	}
	c.replayed = true
	return resp, nil
}

// less is how sure an answer of the cache is that was given to another question.
func (c *conduct) less(confidence float64) float64 { return math.Floor(100*confidence*c.near) / 100 }

// static is a static answer to the question.
func (c *conduct) static(t *Tier, turn cascade.Turn) (*http.Response, error) {
	m, ok := t.Answers.Find(c.x.request.Question(), answers.Accepted(c.x.language)...)
	if !ok {
		return nil, cascade.ErrNothing
	}
	return c.say(m.Answer, turn, map[string]string{"answer": m.ID, "language": m.Language})
}

// sorry is a message of a tier. One that many people see again and again reads like a machine, so it
// is one of several.
func (c *conduct) sorry(t *Tier, turn cascade.Turn) (*http.Response, error) {
	meta := make(map[string]string, 3)
	var said string
	if c.x.d.closed() {
		said, meta["maintenance"] = c.x.d.o.Maintenance.Message, "true"
	} else {
		i := rand.IntN(len(t.Messages))
		said, meta["message_index"] = t.Messages[i], strconv.Itoa(i)
	}
	if t.Contact != "" {
		said, meta["contact"] = said+"\n\n"+t.Contact, t.Contact
	}
	return c.say(said, turn, meta)
}

// say is an answer that no model gave, in the caller's format. There is none where it is
// not known how the model would have put it.
func (c *conduct) say(text string, turn cascade.Turn, meta map[string]string) (*http.Response, error) {
	all := c.x.d.meta(turn, true)
	for k, v := range meta {
		all["weir_"+k] = v
	}
	header, body := c.x.request.Answer(llm.Answer{Text: text, Model: c.x.request.Model, Meta: all})
	if header == nil {
		return nil, cascade.ErrNothing
	}
	return made(header, body), nil
}

// meta is what an answer's body says of where it comes from.
func (d *Dialect) meta(turn cascade.Turn, degraded bool) map[string]string {
	all := map[string]string{"weir_tier": turn.Tier, "weir_confidence": percent(turn.Confidence), "weir_degraded": strconv.FormatBool(degraded)}
	if reduced := d.reduced(); reduced != "" {
		all["weir_reduced"] = reduced
	}
	return all
}

// made is an answer of weir's own making.
func made(header http.Header, body []byte) *http.Response {
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set(CostHeader, price.Amount(0).String())
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
