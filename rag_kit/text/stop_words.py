"""Words that carry no topic: a short list for the index, a longer one for weighing evidence."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Lucene's 33 English stop words: .676/.687 nDCG@10 on scifact was measured with these.
ENGLISH = _words(
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
    "they this to was will with"
)

# Function words only; nothing here names a thing, a time or a place. One-character words come from the
# segmenter as words of their own, so 的 inside 目的 is not touched.
CHINESE = _words(
    "的 了 是 在 和 与 及 或 而 也 都 就 还 又 把 被 让 给 对 从 向 于 以 之 其 这 那 此 该 吗 呢 吧 啊 呀 嘛 着 过 "
    "地 得 很 将 并 且 但 因 为 则 所 由 等 个 们 它 他 她 我 你 您"
)

ENGLISH_EVIDENCE = ENGLISH | _words(
    "i me my we us our you your he him his she her its them what which who whom whose when where why how do "
    "does did done doing have has had having can could should would may might must shall am were been being "
    "from about than so because while during before after above below over under again further once here "
    "all any both each few more most other some only own same too very just also between through out up down "
    "off nor s t don't doesn't didn't isn't aren't wasn't weren't please tell give explain describe"
)

CHINESE_EVIDENCE = CHINESE | _words(
    "什么 怎么 怎样 怎么样 如何 为什么 为何 哪 哪些 哪个 哪里 哪儿 哪位 哪一 谁 "
    "多少 几 何 何时 何地 何人 请 请问 是否 可以 能 能否 会 有 没有 没 不 "
    "有没有 是不是 我们 你们 他们 她们 它们 自己 这个 那个 这些 那些 这里 那里 "
    "这样 那样 因为 所以 但是 而且 并且 或者 以及 如果 虽然 然而 因此 由于 关于 "
    "对于 通过 根据 作为 一个 一种 一些 已经 正在 曾 曾经 之间 之后 之前 时候 "
    "告诉 说明 解释 介绍 哪年 属于 进行 其中 其他 还是 不是 就是 都是 也是 只 "
    "只有 才 再 上 下 中 里 到 来 去 说 用 做 更 最 所有 每 各 某 另 另外 "
    "同时 后 前 时 当 若 如 即 跟 比 按 至 名 位 种 次"
)
