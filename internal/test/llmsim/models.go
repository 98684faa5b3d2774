package llmsim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// names returns the requested model, or all models.
func (c *call) names() []string {
	if c.model != "" {
		return []string{c.model}
	}
	return c.p.names()
}

// listed writes the models one by one.
func (c *call) listed(one func(name string) string) string {
	var all []string
	for _, name := range c.names() {
		all = append(all, one(name))
	}
	return strings.Join(all, ",")
}

func (openAI) models(c *call) []byte {
	list := c.listed(func(name string) string {
		return fmt.Sprintf(`{"id":%s,"object":"model","created":1700000000,"owned_by":"llmsim"}`, quote(name))
	})
	if c.model != "" {
		return indent(list)
	}
	return indent(`{"object":"list","data":[` + list + `]}`)
}

func (anthropic) models(c *call) []byte {
	list := c.listed(func(name string) string {
		return fmt.Sprintf(`{"type":"model","id":%s,"display_name":%s,"created_at":"2025-01-01T00:00:00Z"}`, quote(name), quote(name))
	})
	if c.model != "" {
		return []byte(list)
	}
	first, last := "null", "null"
	if names := c.names(); len(names) > 0 {
		first, last = quote(names[0]), quote(names[len(names)-1])
	}
	return fmt.Appendf(nil, `{"data":[%s],"has_more":false,"first_id":%s,"last_id":%s}`, list, first, last)
}

func (gemini) models(c *call) []byte {
	list := c.listed(func(name string) string {
		return fmt.Sprintf(`{"name":%s,"version":"001","displayName":%s,"inputTokenLimit":1048576,"outputTokenLimit":%d,"supportedGenerationMethods":["generateContent","countTokens"]}`,
			quote("models/"+name), quote(name), c.spec.MaxOutput)
	})
	if c.model != "" {
		return indent(list)
	}
	return indent(`{"models":[` + list + `]}`)
}

type embeddingsBody struct {
	Model          string
	Input          json.RawMessage
	Dimensions     int
	EncodingFormat string `json:"encoding_format"`
}

// maxDimensions bounds the size of a requested embedding.
const maxDimensions = 4096

func (openAI) parseEmbeddings(c *call) *failure {
	var b embeddingsBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "the JSON of the request body could not be read: "+err.Error())
	}
	c.model, c.dims, c.base64 = b.Model, b.Dimensions, b.EncodingFormat == "base64"
	var one string
	if json.Unmarshal(b.Input, &one) == nil {
		c.inputs = []string{one}
	} else if json.Unmarshal(b.Input, &c.inputs) != nil {
		c.inputs = nil
	}
	switch {
	case b.Model == "":
		return bad("model", "you must provide a model parameter")
	case len(c.inputs) == 0 || len(c.inputs) > 2048 || slices.Contains(c.inputs, ""):
		return bad("input", "'input' must be a text, or a list of 1 to 2048 of them.")
	case c.dims < 0 || c.dims > maxDimensions:
		return bad("dimensions", "Invalid value for 'dimensions'.")
	case c.dims == 0:
		c.dims = 1536
	}
	c.spec, _ = c.p.model(c.model)
	r := reader{}
	for _, s := range c.inputs {
		r.bytes += len(s)
	}
	r.measure(c)
	c.told = tokens{in: c.input}
	return nil
}

func (openAI) embeddings(c *call) []byte {
	var all []string
	for i, s := range c.inputs {
		all = append(all, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, vector(s, c.dims, c.base64)))
	}
	usage := fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d}`, c.told.in, c.told.in)
	if c.silent {
		usage = ""
	}
	return fmt.Appendf(nil, `{"object":"list","data":[%s],"model":%s%s}`, strings.Join(all, ","), quote(c.model), usage)
}

// vector returns a vector of length 1, which depends only on the text.
func vector(s string, dims int, packed bool) string {
	x := uint32(2166136261)
	for _, b := range []byte(s) {
		x = (x ^ uint32(b)) * 16777619
	}
	each := float32(1 / math.Sqrt(float64(dims)))
	var raw []byte
	var plain []string
	for range dims {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		v := each
		if x&1 == 1 {
			v = -each
		}
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		plain = append(plain, strconv.FormatFloat(float64(v), 'g', -1, 32))
	}
	if packed {
		return `"` + base64.StdEncoding.EncodeToString(raw) + `"`
	}
	return "[" + strings.Join(plain, ",") + "]"
}
