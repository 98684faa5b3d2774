package tokens

// frame returns the tokens of a prompt in addition to its texts and media.
func (k kind) frame(p Prompt) int64 {
	messages, tools := int64(max(p.Messages, 0)), int64(max(p.Tools, 0))
	switch k.maker {
	case openAI:
		// 3 for each message, 1 for a name, and 3 before the answer. The source, cookbook.openai.com, "How to count
		// tokens with tiktoken", also has about 8 for each function.
		return 3*messages + int64(max(p.Names, 0)) + 3 + 8*tools
	case anthropic:
		// Tools add a system prompt of 346 tokens with Claude 4, according to platform.claude.com, "Pricing", tool use,
		// in 2025. Other models differ slightly.
		return 4*messages + 4 + min(tools, 1)*346
	}
	return 4*messages + 2
}

func (k kind) media(p Prompt) (sum int64) {
	for _, i := range p.Images {
		sum += k.image(i)
	}
	// The number of pages or seconds is unknown, so it is estimated from the size. The rates assume pages of 75 kB,
	// audio of 64 kbit/s and video of 1 Mbit/s.
	switch k.maker {
	case google: // 258 per page, 32 and 263 per second: ai.google.dev, "Understand and count tokens", 2026
		sum += per(p.PDF, 258, 75_000) + per(p.Audio, 32, 8_000) + per(p.Video, 263, 125_000)
	default: // Claude's manual has 1,500 to 3,000 per page for the text, plus the image
		sum += per(p.PDF, 3_000, 75_000) + per(p.Audio, 10, 8_000) + per(p.Video, 263, 125_000)
	}
	return sum
}

// per returns rate tokens for each started unit of size bytes.
func per(bytes, rate, size int64) int64 {
	bytes = min(max(bytes, 0), 1<<40)
	return (bytes + size - 1) / size * rate
}

// side is the assumed side length in pixels of an image of unknown size.
const side = 1024

func (k kind) image(i Image) int64 {
	w, h := i.size()
	switch k.maker {
	case anthropic: // platform.claude.com, "Vision"
		w, h = fit(w, h, 1568)
		return min((w*h+749)/750, 1600)
	case google: // ai.google.dev, "Understand and count tokens"
		if w <= 384 && h <= 384 {
			return 258
		}
		return 258 * min(tiles(w, 768)*tiles(h, 768), 16)
	case openAI: // developers.openai.com, "Images and vision": 85, and 170 per tile, as for GPT-4o
		if i.Low {
			return 85
		}
		w, h = fit(w, h, 2048)
		if short := min(w, h); short > 768 {
			w, h = w*768/short, h*768/short
		}
		return 85 + 170*tiles(w, 512)*tiles(h, 512)
	}
	return 1000
}

// size returns the image's size, or a likely one. Compressed images have about two bits per pixel.
func (i Image) size() (w, h int64) {
	if i.Width > 0 && i.Height > 0 {
		return min(int64(i.Width), 1<<20), min(int64(i.Height), 1<<20)
	}
	if i.Bytes <= 0 || i.Bytes > side*side/4 {
		return side, side
	}
	for w = 64; w*w < i.Bytes*4; w += 64 {
	}
	return w, w
}

// fit scales an image down until neither side is longer than allowed.
func fit(w, h, allowed int64) (int64, int64) {
	if long := max(w, h); long > allowed {
		return max(w*allowed/long, 1), max(h*allowed/long, 1)
	}
	return w, h
}

func tiles(length, tile int64) int64 { return (length + tile - 1) / tile }
