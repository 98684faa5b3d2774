// Package answers has static answers, for the tier of a cascade that answers when no model can. A question is looked up
// with a text index. The index has word stems for each language, and pairs of characters for Japanese, Chinese and
// Korean.
//
// # The file
//
//	answers:
//	  - id: returns                       # optional
//	    questions:                        # a list, or lists by language
//	      - How do I return an item?
//	      - 商品を返品するにはどうすればいいですか
//	    keywords: [send back, 返品]       # words and phrases that match alone
//	    answer:                           # a text, or texts by language
//	      en: You can return anything within 30 days.
//	      ja: お届けから30日以内なら返品できます。
//	    languages: [en, ja]               # optional: languages of the answer
//
// A question in a plain list belongs to the language of its entry that uses its script.
//
// # Confidence
//
// A tf-idf score has no upper limit and depends on the length of both texts, so it cannot be compared with a threshold.
// The confidence relates it to the maximum possible score. It is 1 for the exact text of an entry's question, and
// otherwise the larger of two measures:
//
//   - The similarity to one question or keyword of the entry. This is the square root of the score divided by the score
//     of that text for itself. With the weights used, it is the geometric mean of two values: the cosine between the
//     texts, and the share of the question's words that were found. Rare words have larger weights, and words unknown to
//     the book the largest.
//   - The share of the question in all questions and keywords of the entry together. This is the square root of the
//     score divided by the score of a text with every word of the question. It is at most 0.77, because words from
//     different texts may mean something else.
//
// Both are comparable for short and long texts, and for words and pairs of characters. Words of the question that the
// entry does not have reduce both. A long question that only contains a keyword therefore stays below Threshold.
//
// Words do not express negation: "do not cancel my order" gets the answer to "cancel my order".
package answers
