"""Labels of a text with what is said of them: "label: text", posts with who holds them, parties with what they do."""

from __future__ import annotations

import re

_LABELLED = re.compile(
    r"(?:^|[\u3000\t，；。]|  )\W{0,4}(?P<label>[^\s：:|，；。]{2,16})[：:] ?"
    r"(?P<text>[^\n|\u3000，；。]{2,60}?)(?=  |[\u3000\t，；。]|$)",
    re.MULTILINE,
)
_POST = re.compile(
    r"(?P<given>[^\s，。；：|]{2,12})由(?P<to>[^，。；|]{2,8}?)(?:担任|出任|兼任|负责|主持|主办|承办|协办)"
    r"|(?P<who>[^\s，。；：由|]{2,8}?)(?:担任|出任|兼任|负责|主持)(?P<post>[^，。；|]{2,12})"
)
_PARTY = (
    "[甲乙丙丁]方|(?:出租|承租|发包|承包|委托|受托|托运|承运|买|卖|转让|受让|供|需|出借|借款|担保)[方人]"
    "|用人单位|劳动者"
)
_DUTY = re.compile(
    rf"(?<![向给对为与和同])(?P<party>{_PARTY})(?:[^，。；,;]{{0,6}}?(?:有权|无权|应当?|必须|不得|负责)(?P<action>[^，。；,;\n]{{3,40}}))?"
)


def labels_in(text: str) -> list[tuple[str, str]]:
    """Return each label that a colon follows, with the text behind it.

    Example:
        >>> labels_in("联系人：刘洋，电话：555-0119")
        [('联系人', '刘洋'), ('电话', '555-0119')]
    """
    return [(match["label"], match["text"]) for match in _LABELLED.finditer(text)]


def posts_in(text: str) -> list[tuple[str, str]]:
    """Return posts with who holds them, and parties of a contract with what they may or must do, or "".

    Example:
        >>> posts_in("安全员由刘洋担任，张伟担任项目经理。甲方应当支付租金。")
        [('安全员', '刘洋'), ('项目经理', '张伟'), ('甲方', '支付租金')]
    """
    posts = [(match["given"] or match["post"], match["to"] or match["who"]) for match in _POST.finditer(text)]
    return posts + [(match["party"], match["action"] or "") for match in _DUTY.finditer(text)]
