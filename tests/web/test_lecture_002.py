"""The figures of lecture 002 show what numpy computes."""

import re
from collections import Counter

import numpy as np
import pytest

from clearhead.lectures.random_numbers import seed_of
from tests.web.skip_gram import WIDTHS, count_pairs, sweep, train, uniform
from tests.web.test_lecture_001 import figure, fill, go, number, sees, softmax, table

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy"]
FEATURES = 32


def features(word):
    """A word's vector, seeded by the word's hash."""
    return uniform(1, seed_of(word), FEATURES)


def run_head(words=WORDS, d_v=8, causal=True, divided=False):
    x = np.array([features(word) for word in words])
    Q, K = (x @ uniform(0.3, seed, FEATURES, FEATURES) for seed in (1, 2))
    V = x @ uniform(0.3, 3, FEATURES, 10)[:, :d_v]
    S = Q @ K.T / (FEATURES**0.5 if divided else 1)
    if causal:
        S[np.triu_indices(len(S), 1)] = -np.inf
    P = softmax(S)
    return {"X": x, "Q": Q, "K": K, "V": V, "S": S, "P": P, "A": P @ V}


def heat_map(visitor, name):
    """The numbers in a heat map's tooltips."""
    cells = visitor.page.locator(f".figure [role=img][aria-label='{name}']")
    columns = cells.evaluate("each => getComputedStyle(each).gridTemplateColumns.split(' ').length")
    labels = cells.locator("span").count()
    values = cells.locator("i").evaluate_all("cells => cells.map((cell) => cell.title)")
    return np.array([number(each) for each in values]).reshape(-1, columns - bool(labels))


def shows(visitor, name, expected):
    visitor.expect(lambda: heat_map(visitor, name), pytest.approx(np.atleast_2d(expected), abs=6e-4))


def parse(cells):
    """The numbers in cells, some of which may be empty or −∞."""
    return [number(cell.replace("∞", "inf")) for cell in cells if cell != ""]


def test_widths_are_trained_and_compared(visitor):
    go(visitor, "002.1")
    for amount, seed in ((60, 1), (35, 4)):
        fill(visitor, Training_sentences=amount, Seed=seed)
        visitor.expect(lambda: "Guess, then train" in figure(visitor), True)
        visitor.button("Train 6 models").click()
        losses = sweep(amount, seed)
        best = [width for width, loss in zip(WIDTHS, losses[0], strict=True) if loss < losses[0].min() + 4e-5]
        assert len(best) == 1
        visitor.expect(lambda best=best: f"lowest at width {best[0]}." in figure(visitor), True)
        sees(visitor, "Loss by width", losses, 4)


def test_pairs_and_vectors_of_skip_gram(visitor):
    go(visitor, "002.2")
    fox = [*WORDS, "dog"]

    def neighbors():
        return [row[0].split(" · ") for row in table(visitor, "Training pairs")]

    for window in (2, 3):
        fill(visitor, Window=window)
        wanted = [fox[max(0, i - window) : i] + fox[i + 1 : i + window + 1] for i in range(9)]
        visitor.expect(neighbors, wanted)
    text = ["A cat eats fish.", "A dog eats meat!", "The bus is late", "The train is late"]
    sentences = [re.findall(r"\w+", line.lower()) for line in text]
    vocabulary = sorted({word for words in sentences for word in words})
    visitor.page.get_by_label("Sentences to train on").fill("\n".join(text))
    fill(visitor, Window=2)
    for steps, word in ((0, "cat"), (60, "bus")):
        fill(visitor, Steps=steps)
        visitor.page.get_by_role("combobox", name="Nearest to").select_option(word)
        vectors = train(count_pairs(sentences, vocabulary, 2), 8, steps, seed=1)[0]
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        cosines = dict(zip(vocabulary, vectors @ vectors[vocabulary.index(word)], strict=True))
        nearest = sorted(set(vocabulary) - {word}, key=cosines.get, reverse=True)[:5]
        rows = visitor.page.get_by_role("table", name="Nearest to")
        visitor.expect(rows.get_by_role("rowheader").all_inner_texts, nearest)
        sees_cosines = pytest.approx([cosines[each] for each in nearest], abs=6e-4)
        visitor.expect(lambda: [number(row[0]) for row in table(visitor, "Nearest to")], sees_cosines)
        cat_and_dog = vectors[vocabulary.index("cat")] @ vectors[vocabulary.index("dog")]
        readout = visitor.page.locator(".figure dd").inner_text()
        assert number(readout) == pytest.approx(cat_and_dog, abs=6e-4)
    assert nearest[0] == "train"


def predict(lines, past):
    """Naive Bayes over the last words of the lines."""
    lines = [line.split() for line in lines]
    known = [word for word in past if any(word in line[:-1] for line in lines)]
    scores = {}
    for ending in {line[-1] for line in lines}:
        ends = [line[:-1] for line in lines if line[-1] == ending]
        shares = [(sum(word in line for line in ends) + 1) / (len(ends) + 2) for word in known]
        scores[ending] = len(ends) * np.prod(shares)
    return {word: score / sum(scores.values()) for word, score in scores.items()}


def test_words_decide_the_next_one(visitor):
    go(visitor, "002.3")
    page = visitor.page
    lines = page.get_by_label("Lines; the last word of each is predicted").input_value().split("\n")
    past = re.findall(r"\w+", page.get_by_label("What comes next?").input_value().lower())
    chips = page.get_by_role("group", name="Words to leave out").get_by_role("button")

    def check(given, next_word):
        wanted = predict(lines, [past[i] for i in given])
        assert max(wanted, key=wanted.get) == next_word

        def probabilities():
            rows = page.get_by_role("table", name="next word")
            words = rows.get_by_role("rowheader").all_inner_texts()
            values = [number(row[0]) for row in table(visitor, "next word")]
            return dict(zip(words, values, strict=True))

        visitor.expect(lambda: next(iter(probabilities())), next_word)
        assert probabilities() == pytest.approx({word: wanted[word] for word in probabilities()}, abs=6e-5)
        effects = [
            wanted[next_word] - predict(lines, [past[j] for j in given if j != i])[next_word] for i in given
        ]
        labels = chips.locator("small").all_inner_texts()
        assert [number(labels[i]) for i in given] == pytest.approx(effects, abs=6e-4)

    everything = list(range(len(past)))
    check(everything, "her")
    options = ["secret", "girl", "his", "belongings"]
    left = [past[:i] + past[i + 1 :] for i in map(past.index, options)]
    assert np.argmin([predict(lines, each)["her"] for each in left]) == 1  # the answer to the question
    girl = past.index("girl")
    chips.nth(girl).click()
    check([i for i in everything if i != girl], "him")
    chips.nth(girl).click()
    fill(visitor, Words=girl + 1)
    check(everything[: girl + 1], "her")
    visitor.button("The … lazy ___").click()
    past = WORDS
    check(list(range(8)), "dog")


def follow(text, window):
    """The most frequent word after the longest suffix of the window found in the text, and its frequency."""
    for size in range(len(window), -1, -1):
        end = window[len(window) - size :]
        after = [text[i] for i in range(size, len(text)) if text[i - size : i] == end]
        if after:
            word, times = Counter(after).most_common(1)[0]
            return word, f"{times}/{len(after)}"
    raise AssertionError("the text is empty")


@pytest.mark.parametrize(("length", "generated"), [(8, 5), (2, 20), (1, 3)])
def test_window_slides(visitor, length, generated):
    go(visitor, "002.4")
    fill(visitor, Context_length=length, Words_generated=generated)
    text = visitor.page.get_by_label("Story to learn from").input_value().split()
    words, rows = text[:8], []
    for _ in range(generated):
        word, times = follow(text, words[-length:])
        rows.append([" ".join(words[-length:]), word, times])
        words.append(word)
    visitor.expect(lambda: table(visitor, "Windows"), rows[-5:])
    ignored = any(visitor.page.get_by_role("table", name="Windows").locator("td .muted").all_inner_texts())
    assert ("Gray words did not help" in figure(visitor)) == ignored
    assert visitor.page.get_by_label("Generated text").inner_text().split() == words
    last = visitor.page.locator(".figure tbody th .katex-html").last
    assert last.evaluate("each => each.textContent").replace("\u200b", "").endswith(f"w{8 + generated}")


def test_story_shorter_than_the_context_is_continued(visitor):
    go(visitor, "002.4")
    story = "the cat sat on the mat"
    visitor.page.get_by_label("Story to learn from").fill(story)
    windows = visitor.page.get_by_role("table", name="Windows").locator("tbody tr")
    visitor.expect(lambda: "fox" in windows.first.inner_text(), False)
    assert "cat" in windows.first.inner_text()


def test_feature_vectors_are_rows_of_a_table(visitor):
    go(visitor, "002.5")
    head = run_head()
    shows(visitor, "X", head["X"])
    vocabulary = list(dict.fromkeys(WORDS))
    one_hot = [[word == each for each in vocabulary] for word in WORDS]
    shows(visitor, "one-hot", np.array(one_hot, float))
    shows(visitor, "table", [features(word) for word in vocabulary])
    visitor.button("4 fox").click()
    sees(visitor, "Features of the word", features("fox").reshape(2, 16), 2)
    visitor.page.get_by_label("Sentence", exact=True).fill("a small cat")
    visitor.button("3 cat").click()
    sees(visitor, "Features of the word", features("cat").reshape(2, 16), 2)
    shows(visitor, "X", run_head(["a", "small", "cat"])["X"])
    visitor.page.get_by_label("Sentence", exact=True).fill("")
    visitor.page.get_by_text("Enter 1 to 8 words.").wait_for()


def test_every_score_is_a_dot_product(visitor):
    go(visitor, "002.6")
    head = run_head(causal=False)
    shows(visitor, "Q", head["Q"])
    shows(visitor, "K transposed", head["K"].T)
    assert head["S"][2, 6] == pytest.approx(head["S"][2, 0])  # the answer to the question
    assert head["S"][2, 0] not in (pytest.approx(head["S"][0, 2]), pytest.approx(head["S"][6, 2]))
    sees(visitor, "S", head["S"], 2)

    def check(i, j):
        shows(visitor, "query", head["Q"][i])
        shows(visitor, "key", head["K"][j])
        shows(visitor, "products", head["Q"][i] * head["K"][j])
        visitor.expect(
            lambda: number(visitor.page.locator(".sum b").inner_text()),
            pytest.approx(head["S"][i, j], abs=6e-5),
        )

    check(1, 0)
    visitor.page.get_by_role("button", name="S 5, 3:").click()
    check(4, 2)
    visitor.page.keyboard.press("ArrowRight")  # moves the selection, not to the next stop
    visitor.page.keyboard.press("ArrowDown")
    check(5, 3)
    assert "stop=002.6" in visitor.url


def test_mask_and_softmax_match_numpy(visitor):
    go(visitor, "002.7")
    row = 2
    for causal, divided in ((True, False), (True, True), (False, True), (False, False)):
        visitor.page.get_by_label("mask the future").set_checked(causal)
        visitor.page.get_by_label("divide by").set_checked(divided)
        head = run_head(causal=causal, divided=divided)
        visitor.page.get_by_role("button", name=f"P {row + 1}, 1:").click()
        visitor.expect(
            lambda: np.array([parse(row) for row in table(visitor, "S")]), pytest.approx(head["S"], abs=0.051)
        )
        sees(visitor, "P", head["P"], 2)
        sums = visitor.page.locator(".figure th.sum").all_inner_texts()
        assert sums == 8 * ["1.00"]
        values = [parse(line) for line in table(visitor, "Softmax of the row")]
        powers = np.exp(head["S"][row])
        assert values[0] == pytest.approx(head["S"][row], abs=6e-4)
        assert values[1] == pytest.approx([*powers, powers.sum()], abs=6e-4)
        assert values[2] == pytest.approx([*head["P"][row], 1], abs=6e-5)
        row += 1


@pytest.mark.parametrize("d_v", [8, 3, 10])
def test_output_is_the_weighted_sum_of_values(visitor, d_v):
    go(visitor, "002.8")
    visitor.page.get_by_role("spinbutton", name="Width d_v of the values").fill(str(d_v))
    head = run_head(d_v=d_v)
    for name, key in (("P", "P"), ("V", "V"), ("output", "A")):
        shows(visitor, name, head[key])
    for row, word in ((1, "2 quick"), (7, "8 lazy")):
        visitor.button(word).click()
        terms = head["P"][row, : row + 1, None] * head["V"][: row + 1]
        sees(visitor, "Weighted values", [*terms, terms.sum(0)], 3)


@pytest.mark.parametrize("kept", [False, True])
def test_loops_and_matrices_agree(visitor, kept):
    go(visitor, "002.9")
    fill(visitor, Words=20)
    visitor.page.get_by_label("the loops keep").set_checked(kept)
    T, C, d_k, d_v = 20, 32, 32, 8
    products = [T * C * d_k, T * C * d_k, T * C * d_v, T * T * d_k, T * T * d_v]
    looped = 0
    for i in range(T):
        looped += C * d_k + (i + 1) * (d_k + d_v)
        looped += (1 if kept else i + 1) * C * (d_k + d_v)
    wanted = [*products, sum(products), looped]
    visitor.expect(
        lambda: [number(row[-1].replace(",", "")) for row in table(visitor, "Five products")], wanted
    )
    assert number(visitor.page.locator("[data-difference]").inner_text()) <= 1e-12
    readouts = visitor.page.locator(".figure dd")
    assert readouts.count() == 0
    visitor.button("Measure the time").click()
    visitor.expect(readouts.count, 3)
    loops, matrices, ratio = (number(re.findall(r"[\d.e−]+", each)[0]) for each in readouts.all_inner_texts())
    assert min(loops, matrices) > 0
    assert ratio == pytest.approx(loops / matrices, rel=0.2, abs=0.06)  # a ratio of rounded times
    fill(visitor, Words=10)
    visitor.expect(readouts.count, 0)  # the time was measured for a different number of words


KINDS = ["det.", "adj.", "noun", "verb", "prep."]
KINDS_OF_WORDS = ["det.", "adj.", "adj.", "noun", "verb", "prep.", "det.", "adj."]


def relate(*sought):
    """The weights of a head in which words of the first kind in each pair look for words of the second."""
    x = np.array([[kind == each for each in KINDS] for kind in KINDS_OF_WORDS], float)
    W_Q = np.zeros((5, 5))
    for kind, other in sought:
        W_Q[KINDS.index(kind), KINDS.index(other)] = 1
    S = x @ W_Q @ (10 * x).T
    S[np.triu_indices(8, 1)] = -np.inf
    return softmax(S)


def test_head_is_a_relationship(visitor):
    go(visitor, "002.10")
    sees(visitor, "P", relate(("noun", "adj.")), 2)
    assert "fox attends to quick 0.500, brown 0.500" in figure(visitor)
    visitor.button("verb → noun").click()
    sees(visitor, "P", relate(("verb", "noun")), 2)
    visitor.expect(lambda: "jumps attends to fox 1.000" in figure(visitor), True)
    visitor.page.get_by_role("checkbox", name="adj. looks for verb").check()
    sees(visitor, "P", relate(("verb", "noun"), ("adj.", "verb")), 2)
    visitor.expect(lambda: "lazy attends to jumps 1.000" in figure(visitor), True)
    for box in ("adj. looks for verb", "verb looks for noun"):
        visitor.page.get_by_role("checkbox", name=box).uncheck()
    visitor.page.get_by_text("No kind of word looks for anything.").wait_for()


def test_loss_of_one_token(visitor):
    go(visitor, "002.11")

    def shown():
        rows = [parse(cells) for cells in table(visitor, "Vocabulary of four words")]
        return np.array([row[-5:] for row in rows])

    def expected(z, target, rate):
        p, y = softmax(z), np.eye(4)[target]
        moved = z - rate * (p - y)
        return moved, np.stack([p, y, p - y, moved, softmax(moved)], axis=1)

    z, rows = expected(np.array([0.0, 1, 0, 0]), 0, 1)
    visitor.expect(shown, pytest.approx(rows, abs=6e-4))
    assert "1.7437" in figure(visitor)
    visitor.button("Take the step").click()
    z, rows = expected(z, 0, 1)
    visitor.expect(shown, pytest.approx(rows, abs=6e-4))
    visitor.button("day").click()
    fill(visitor, Learning_rate_η=2.5)
    visitor.expect(shown, pytest.approx(expected(rows[:, 3] + rows[:, 2], 2, 2.5)[1], abs=2e-3))


def test_stops_5_to_8_are_one_example(visitor):
    go(visitor, "002.5")
    page = visitor.page
    page.get_by_label("Sentence", exact=True).fill("one two three")
    page.locator(".brand").click()
    page.keyboard.press("ArrowRight")
    sees(visitor, "S", run_head(["one", "two", "three"], causal=False)["S"], 2)
    page.get_by_role("button", name="S 3, 2:").click()
    page.locator(".brand").click()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    shows(visitor, "output", run_head(["one", "two", "three"])["A"])
    assert visitor.button("3 three").get_attribute("aria-pressed") == "true"
    visitor.button("Reset").click()
    shows(visitor, "output", run_head()["A"])


def test_figures_accept_empty_fields(visitor):
    for stop in ("002.2", "002.3", "002.4", "002.5", "002.7"):
        go(visitor, stop)
        fields = visitor.page.locator(".figure :is(textarea, input:not([type]))")
        assert fields.count() > 0
        for field in fields.all():
            field.fill("")
        visitor.settle()
        visitor.button("Reset").click()
        visitor.expect(lambda fields=fields: "" in [field.input_value() for field in fields.all()], False)
