"""The closed vocabulary of the generated tasks."""

from __future__ import annotations


def _split(block: str) -> tuple[str, ...]:
    return tuple(block.split())


NOUNS = _split(
    """
    actor apple artist author baker band bank beach bear bell bike bird boat book bottle box boy branch
    bread bridge brother bus cake camera captain car castle cat chair chief child church city clock
    cloud coach coat coffee cook corner cow crowd cup daughter desk doctor dog door dream driver duck
    engine farm farmer father field fire fish flag flower forest fox friend garden gate girl glass guard
    guest hammer harbor hat hill horse hotel house island jacket judge key king kitchen knife ladder
    lake lamp lawyer leaf letter library lion lock machine map market mayor mirror moon mother mountain
    """
)
OTHER_NOUNS = _split(
    """
    museum nurse ocean office orange paper park pencil phone piano picture pilot plane planet plate
    player poet pond queen rabbit radio rain ring river road robot roof room rope sailor school seed
    sheep ship shirt shoe shop singer sister snow soldier song spoon star station stone storm street
    student sugar sun table tailor teacher temple tent ticket tiger tower town train tree truck uncle
    valley village wall watch water wheel window winter wolf writer
    """
)
VERBS = _split(
    """
    asks brings builds buys calls carries catches cleans closes counts draws drops feeds fills finds
    follows gets guides helps hears holds joins keeps kicks lifts likes makes meets moves names opens
    paints passes pays plays pulls pushes reads sees sells sends shows stops takes teaches tells touches
    turns uses visits wants washes
    """
)
ADJECTIVES = _split(
    """
    big blue brown clean cold dark deep dry early fast flat full green heavy high hot large late light
    little long loud low narrow new old quick quiet red round sharp short slow small soft square tall
    thin warm wet wide young
    """
)
ARTICLES = ("the", "a", "this", "that")
QUESTIONS = ("who", "what", "when", "where", "why", "how")

# Words whose choice depends on the label.
PRAISE = ("charming", "delightful", "funny", "great", "lovely", "wonderful")
BLAME = ("awful", "boring", "clumsy", "dull", "stupid", "terrible")
CORRECT = ("came", "drank", "gave", "ran", "sang", "took")
INCORRECT = ("comed", "drinked", "gived", "runned", "singed", "taked")
AGREEING = ("also", "exactly", "indeed", "likewise", "same", "truly")
OPPOSING = ("differently", "instead", "never", "not", "opposite", "unlike")
HEDGING = ("likely", "maybe", "might", "perhaps", "possibly", "sometimes")

VOCABULARY: tuple[str, ...] = (
    *(".", *ARTICLES, *QUESTIONS, *NOUNS, *OTHER_NOUNS, *VERBS, *ADJECTIVES),
    *(*PRAISE, *BLAME, *CORRECT, *INCORRECT, *AGREEING, *OPPOSING, *HEDGING),
)
