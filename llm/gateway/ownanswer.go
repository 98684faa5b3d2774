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

// old returns the cached answer regardless of its age.
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

// less reduces the confidence of a cached answer by the similarity of its question.
func (c *conduct) less(confidence float64) float64 { return math.Floor(100*confidence*c.near) / 100 }

func (c *conduct) static(t *Tier, turn cascade.Turn) (*http.Response, error) {
	m, ok := t.Answers.Find(c.x.request.Question(), answers.Accepted(c.x.language)...)
	if !ok {
		return nil, cascade.ErrNothing
	}
	return c.say(m.Answer, turn, map[string]string{"answer": m.ID, "language": m.Language})
}

// sorry returns a message of a tier. It chooses one of several at random, because a message repeated to many people
// sounds mechanical.
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

// say returns an answer without a model, in the caller's format. It returns cascade.ErrNothing if the format is unknown.
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

// meta returns the metadata in the answer's body that describes its source.
func (d *Dialect) meta(turn cascade.Turn, degraded bool) map[string]string {
	all := map[string]string{"weir_tier": turn.Tier, "weir_confidence": percent(turn.Confidence), "weir_degraded": strconv.FormatBool(degraded)}
	if reduced := d.reduced(); reduced != "" {
		all["weir_reduced"] = reduced
	}
	return all
}

// made returns a response that weir produced itself.
func made(header http.Header, body []byte) *http.Response {
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set(CostHeader, price.Amount(0).String())
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
